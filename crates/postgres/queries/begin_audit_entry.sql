-- Adds an audit entry before its action runs. $1 actor, $2 tenant, $3 action, $4 target, $5 detail, $6 request id.
INSERT INTO orchestrix.audit (at, actor, tenant, action, target, detail, request_id) VALUES (now(), $1, $2, $3, $4, $5, $6) RETURNING seq
