-- Entries of the audit, the newest first; read row by row until there are enough. ?1 and ?2 before which time and number, ?3 from which time.
-- Relies on audit_at.
SELECT seq, at, actor, tenant, action, target, detail, request_id, outcome FROM audit
WHERE (at, seq) < (?1, ?2) AND at >= ?3 ORDER BY at DESC, seq DESC
