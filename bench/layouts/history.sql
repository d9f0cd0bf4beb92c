-- finished jobs, whole rows
create table history(id uuid primary key, created_at timestamptz not null, eligible_at timestamptz not null, finished_at timestamptz not null,
  lease_no int not null, rank smallint not null, state smallint not null, attempt smallint not null, max_attempts smallint not null,
  has_dependents bool not null, queue text not null, job_type text not null, tenant text not null, worker text, options text, payload text, result text)
  partition by range (id);
alter table history alter payload set storage :store, alter payload set compression :comp;
call add_days('history');
