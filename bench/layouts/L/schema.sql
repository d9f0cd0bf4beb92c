-- L: an immutable job row beside one narrow live row, updated in place at claim and deleted at finish
\ir ../immutable.sql
create table live(id uuid primary key, eligible_at timestamptz not null, lease_expires_at timestamptz, lease_secret uuid, lease_no int not null default 0,
  rank smallint not null, state smallint not null default 0, attempt smallint not null default 0, max_attempts smallint not null default 20,
  queue text not null, tenant text not null, worker text) with (fillfactor = :ff);
create index live_claim on live(queue, rank, eligible_at, id) where state = 0;
create index live_worker on live(worker) where state = 1;
