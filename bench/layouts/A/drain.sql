-- every pending job finished in one statement, to make dead rows
with d as (delete from jobs where ctid = any(array(select ctid from jobs where state = 0 order by queue, rank, eligible_at, id limit :n)) returning *)
insert into history select id, created_at, eligible_at, now(), lease_no, rank, 2, attempt, max_attempts, has_dependents, queue, job_type,
  tenant, worker, options, payload, '"ok"' from d;
