-- apart: blocked jobs wait in a table of their own
\ir ../../B/schema.sql
create table waiting(like ready including all, ckey text not null);
drop index waiting_queue_rank_eligible_at_id_idx;
create index waiting_key on waiting(ckey, rank, eligible_at, id);
