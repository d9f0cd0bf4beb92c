with d as (delete from ready where ctid = any(array(select ctid from ready order by queue, rank, eligible_at, id limit :n)) returning *)
insert into history select id, created_at, eligible_at, now(), lease_no, rank, 2, attempt, max_attempts, has_dependents, queue, job_type,
  tenant, null, options, payload, '"ok"' from d;
