with l as materialized (select ctid as lid, queue, rank, tenant from lane where queue = 'q' order by rank, vtime limit :k for update skip locked),
  share as (select (:k::int / greatest(count(*), 1))::int as each from l),
  pick as (select l.lid, l.rank, l.tenant, j.jid from l, share, lateral (select r.ctid as jid from ready r where r.queue = l.queue and r.rank = l.rank and r.tenant = l.tenant
      and r.eligible_at <= now() order by r.eligible_at, r.id limit greatest(share.each, 1) for update skip locked) j),
  used as (select lid, rank, tenant, count(*) as n from pick group by 1, 2, 3),
  adv as (update lane set vtime = vtime + used.n * 1000000 / weight from used where lane.queue = 'q' and lane.rank = used.rank and lane.tenant = used.tenant),
  gone as (delete from lane where ctid = any(array(select lid from l where lid not in (select lid from used)))),
  d as (delete from ready where ctid = any(array(select jid from pick)) returning *),
  u as (insert into leased select id, created_at, eligible_at, now() + interval '1 min', (select gen_random_uuid()), lease_no + 1, rank,
      (attempt + 1)::smallint, max_attempts, has_dependents, queue, job_type, tenant, 'worker-1', options, payload from d
    returning id, lease_secret, payload)
select coalesce(array_agg(id), '{}') as ids, coalesce(array_agg(lease_secret), '{}') as toks, max(length(payload)) as m from u \gset
