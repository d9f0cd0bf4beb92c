-- tags: each job gets a virtual start time at enqueue from its tenant's clock; the claim order is (queue, rank, tag, id)
\ir ../../B/schema.sql
alter table ready add vtag bigint not null default 0;
drop index ready_claim;
create index ready_claim on ready(queue, rank, vtag, id);
create table clock(queue text, rank smallint, tenant text, vtime bigint not null, weight int not null default 1000, primary key (queue, rank, tenant)) with (fillfactor = 70);
