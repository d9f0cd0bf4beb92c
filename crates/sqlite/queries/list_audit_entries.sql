-- Audit entries, newest first. The caller stops reading when its page is full.
-- ?1 and ?2 before this time and number, ?3 from this time on. Relies on audit_at.
SELECT seq, at, actor, tenant, action, target, detail, request_id, outcome FROM audit
WHERE (at, seq) < (?1, ?2) AND at >= ?3 ORDER BY at DESC, seq DESC
