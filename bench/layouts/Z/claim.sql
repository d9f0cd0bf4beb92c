with d as (delete from ready where ctid = any(array(select ctid from ready where queue = 'q' and eligible_at <= now() /*cursor*/
      order by rank, eligible_at, id limit :k for update skip locked)) returning *),
  u as (insert into leased select gen_random_uuid(), now() + interval '1 min', 'worker-1', array_agg(id), array_agg((attempt + 1)::smallint),
      array_agg(lease_no + 1) from d having count(*) > 0 returning lease_secret),
  x as (select count(*) as n, max(length(payload)) as m from d join job using (id))
select coalesce(array_agg(lease_secret), '{}') as toks, max(n) as n, max(m) as m from x left join u on true \gset
