-- B: the whole row moves from ready to leased to history
\ir ../history.sql
create table ready(id uuid primary key, created_at timestamptz not null, eligible_at timestamptz not null, lease_no int not null default 0,
  rank smallint not null, attempt smallint not null default 0, max_attempts smallint not null default 20,
  has_dependents bool not null default false, queue text not null, job_type text not null, tenant text not null, options text, payload text);
create index ready_claim on ready(queue, rank, eligible_at, id);
create table leased(id uuid primary key, created_at timestamptz not null, eligible_at timestamptz not null, lease_expires_at timestamptz not null,
  lease_secret uuid not null, lease_no int not null, rank smallint not null, attempt smallint not null, max_attempts smallint not null,
  has_dependents bool not null, queue text not null, job_type text not null, tenant text not null, worker text not null, options text,
  payload text) with (fillfactor = :ff);
alter table ready alter payload set storage :store, alter payload set compression :comp;
alter table leased alter payload set storage :store, alter payload set compression :comp;
