-- A: one live row per unfinished job, updated in place at claim, moved to history at finish
\ir ../history.sql
create table jobs(id uuid primary key, created_at timestamptz not null, eligible_at timestamptz not null, lease_expires_at timestamptz,
  lease_secret uuid, lease_no int not null default 0, rank smallint not null, state smallint not null default 0,
  attempt smallint not null default 0, max_attempts smallint not null default 20, has_dependents bool not null default false,
  queue text not null, job_type text not null, tenant text not null, worker text, options text, payload text) with (fillfactor = :ff);
alter table jobs alter payload set storage :store, alter payload set compression :comp;
create index jobs_claim on jobs(queue, rank, eligible_at, id) where state = 0;
create index jobs_lease on jobs(lease_expires_at) where state = 1;
