with j as (insert into job(id, created_at, rank, queue, job_type, tenant, payload)
  select uuid7(n), now(), 0, 'q', 'email.send', 't1', payload from pool returning id, created_at, rank, queue, tenant)
insert into live(id, eligible_at, rank, queue, tenant) select * from j;
