-- Entries of the audit, the newest first; read row by row until there are enough. ?1 before which number.
SELECT seq, at, actor, tenant, action, target, detail, request_id, outcome FROM audit WHERE seq < ?1 ORDER BY seq DESC
