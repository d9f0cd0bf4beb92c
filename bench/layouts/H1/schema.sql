-- H1: as H, but ready has only its claim index (an unfinished job is then not found by id alone)
\ir ../H/schema.sql
alter table ready drop constraint ready_pkey;
