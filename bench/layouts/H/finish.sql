with d as (delete from leased j using unnest(:ids::uuid[], :toks::uuid[]) t(id, tok)
    where j.id = t.id and j.lease_secret = t.tok returning j.*)
insert into history select id, now(), lease_no, 2, attempt, worker, '"ok"' from d;
