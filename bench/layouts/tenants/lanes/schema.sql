-- lanes: one small row per (queue, rank, tenant) with pending jobs, in order of virtual time; jobs indexed by tenant
\ir ../../B/schema.sql
drop index ready_claim;
create index ready_claim on ready(queue, rank, tenant, eligible_at, id);
create table lane(queue text, rank smallint, tenant text, vtime bigint not null, weight int not null default 1000, primary key (queue, rank, tenant)) with (fillfactor = 70);
create index lane_order on lane(queue, rank, vtime);
