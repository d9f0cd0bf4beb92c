-- PB: B with payloads above :thr bytes in a side table that never moves
\ir ../B/schema.sql
\ir ../payloads.sql
