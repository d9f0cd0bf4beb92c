-- H: an immutable job row; narrow rows move ready -> leased -> history; the claim joins for the payload
\ir ../immutable.sql
create table ready(id uuid primary key, eligible_at timestamptz not null, lease_no int not null default 0, rank smallint not null,
  attempt smallint not null default 0, max_attempts smallint not null default 20, queue text not null, tenant text not null);
create index ready_claim on ready(queue, rank, eligible_at, id);
create table leased(id uuid primary key, lease_expires_at timestamptz not null, lease_secret uuid not null, lease_no int not null,
  rank smallint not null, attempt smallint not null, max_attempts smallint not null, queue text not null, tenant text not null, worker text not null)
  with (fillfactor = :ff);
