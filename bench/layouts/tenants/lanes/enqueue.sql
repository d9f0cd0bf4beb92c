with i as (insert into ready(id, created_at, eligible_at, rank, queue, job_type, tenant, payload)
  select uuid7(n), now(), now(), 0, 'q', 'email.send', case when :one = 1 or n % 2 = 0 then 't1' else 't' || (random() * 9999)::int end, payload from pool
  returning queue, rank, tenant)
insert into lane select distinct queue, rank, tenant, coalesce((select vtime from lane where queue = 'q' and rank = 0 order by vtime limit 1), 0)
  from i order by tenant on conflict do nothing;
