-- payloads above the threshold: written once, read by id, dropped with their day
create table payloads(id uuid primary key, payload text not null) partition by range (id);
alter table payloads alter payload set storage :store, alter payload set compression :comp;
call add_days('payloads');
