-- Records an action before it is carried out. ?1 now, ?2 actor, ?3 tenant, ?4 action, ?5 target, ?6 detail,
-- ?7 request id.
INSERT INTO audit (at, actor, tenant, action, target, detail, request_id)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) RETURNING seq
