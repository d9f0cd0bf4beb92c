-- The same as list_audit_entries.sql, for actions of callers that are bound to tenant ?4. Relies on audit_tenant.
SELECT seq, at, actor, tenant, action, target, detail, request_id, outcome FROM audit
WHERE tenant = ?4 AND (at, seq) < (?1, ?2) AND at >= ?3 ORDER BY at DESC, seq DESC
