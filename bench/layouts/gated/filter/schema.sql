-- filter: blocked jobs stay in the claim order and are passed over at each claim
\ir ../../B/schema.sql
alter table ready add ckey text;
create table exhausted(ckey text primary key);
insert into exhausted values ('k1');
