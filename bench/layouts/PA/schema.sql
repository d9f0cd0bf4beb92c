-- PA: A2 with payloads above :thr bytes in a side table that never moves
\ir ../A2/schema.sql
\ir ../payloads.sql
