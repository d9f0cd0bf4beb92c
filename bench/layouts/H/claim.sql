with d as (delete from ready where ctid = any(array(select ctid from ready where queue = 'q' and eligible_at <= now() /*cursor*/
      order by rank, eligible_at, id limit :k for update skip locked)) returning *),
  u as (insert into leased select id, now() + interval '1 min', (select gen_random_uuid()), lease_no + 1, rank,
      (attempt + 1)::smallint, max_attempts, queue, tenant, 'worker-1' from d returning id, lease_secret)
select coalesce(array_agg(id), '{}') as ids, coalesce(array_agg(lease_secret), '{}') as toks, max(length(payload)) as m from u join job using (id) \gset
