with d as (delete from live where ctid = any(array(select ctid from live where state = 0 order by queue, rank, eligible_at, id limit :n)) returning *)
insert into history select id, now(), lease_no, 2, attempt, null, '"ok"' from d;
