-- A2: as A, but the lease is found by worker, so neither claim nor heartbeat touches an index on lease_expires_at
\ir ../A/schema.sql
drop index jobs_lease;
create index jobs_worker on jobs(worker) where state = 1;
