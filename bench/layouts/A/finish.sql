with d as (delete from jobs j using unnest(:ids::uuid[], :toks::uuid[]) t(id, tok)
    where j.id = t.id and j.lease_secret = t.tok returning j.*)
insert into history select id, created_at, eligible_at, now(), lease_no, rank, 2, attempt, max_attempts, has_dependents, queue, job_type,
  tenant, worker, options, payload, '"ok"' from d;
