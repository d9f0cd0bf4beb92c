with d as (delete from waiting where ctid = any(array(select ctid from waiting where ckey = 'k1' order by rank, eligible_at, id limit 1000 for update skip locked)) returning *)
insert into ready select id, created_at, eligible_at, lease_no, rank, attempt, max_attempts, has_dependents, queue, job_type, tenant, options, payload from d;
