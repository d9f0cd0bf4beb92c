with s as materialized (select uuid7(n) as id, payload, octet_length(payload) > :thr as big from pool),
  p as (insert into payloads select id, payload from s where big)
insert into ready(id, created_at, eligible_at, rank, queue, job_type, tenant, payload)
  select id, now(), now(), 0, 'q', 'email.send', 't1', case when not big then payload end from s;
