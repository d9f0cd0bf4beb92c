insert into jobs(id, created_at, eligible_at, rank, queue, job_type, tenant, payload)
  select uuid7(n), now(), now(), 0, 'q', 'email.send', 't1', payload from pool;
