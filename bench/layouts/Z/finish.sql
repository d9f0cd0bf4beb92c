with d as (delete from leased where lease_secret = any(:toks::uuid[]) returning *)
insert into history select t.id, now(), t.no, 2, t.attempt, worker, '"ok"' from d, unnest(ids, attempts, lease_nos) t(id, attempt, no);
