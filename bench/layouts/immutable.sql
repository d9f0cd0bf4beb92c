-- the definition of a job, written once; and a narrow row for each that has finished
create table job(id uuid primary key, created_at timestamptz not null, rank smallint not null, max_attempts smallint not null default 20,
  has_dependents bool not null default false, queue text not null, job_type text not null, tenant text not null, options text, payload text)
  partition by range (id);
alter table job alter payload set storage :store, alter payload set compression :comp;
call add_days('job');
create table history(id uuid primary key, finished_at timestamptz not null, lease_no int not null, state smallint not null, attempt smallint not null,
  worker text, result text) partition by range (id);
call add_days('history');
