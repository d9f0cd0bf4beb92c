with s as materialized (select uuid7(n) as id, case when :one = 1 or n % 2 = 0 then 't1' else 't' || (random() * 9999)::int end as tenant, payload from pool),
  now_v as (select coalesce((select vtag from ready where queue = 'q' and rank = 0 order by vtag limit 1), 0) as v),
  c as (insert into clock as c select 'q', 0, tenant, v + count(*) * 1000 from s, now_v group by tenant, v order by tenant
    on conflict (queue, rank, tenant) do update set vtime = greatest(c.vtime, (select v from now_v)) + (excluded.vtime - (select v from now_v)) returning tenant, vtime)
insert into ready(id, created_at, eligible_at, rank, queue, job_type, tenant, payload, vtag)
  select id, now(), now(), 0, 'q', 'email.send', tenant, payload, vtime - 1000 * (row_number() over (partition by tenant order by id desc) - 1) from s join c using (tenant);
