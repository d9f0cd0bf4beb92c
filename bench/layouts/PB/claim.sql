with d as (delete from ready where ctid = any(array(select ctid from ready where queue = 'q' and eligible_at <= now() /*cursor*/
      order by rank, eligible_at, id limit :k for update skip locked)) returning *),
  u as (insert into leased select id, created_at, eligible_at, now() + interval '1 min', (select gen_random_uuid()), lease_no + 1, rank,
      (attempt + 1)::smallint, max_attempts, has_dependents, queue, job_type, tenant, 'worker-1', options, payload from d
    returning id, lease_secret, payload)
select coalesce(array_agg(u.id), '{}') as ids, coalesce(array_agg(lease_secret), '{}') as toks, max(length(coalesce(u.payload, p.payload))) as m
  from u left join payloads p on p.id = u.id and u.payload is null \gset
