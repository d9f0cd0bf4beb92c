-- flag: blocked jobs carry a flag that keeps them out of the partial claim index; a second one finds them by key
\ir ../../B/schema.sql
alter table ready add ckey text, add gated bool not null default false;
drop index ready_claim;
create index ready_claim on ready(queue, rank, eligible_at, id) where not gated;
create index ready_gated on ready(ckey, rank, eligible_at, id) where gated;
