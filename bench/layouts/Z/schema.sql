-- Z: as H, with one lease row for a whole claim (a bound: every job of a claim must finish together here)
\ir ../H/schema.sql
drop table leased;
create table leased(lease_secret uuid primary key, lease_expires_at timestamptz not null, worker text not null, ids uuid[] not null,
  attempts smallint[] not null, lease_nos int[] not null);
