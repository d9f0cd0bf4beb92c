-- nothing is blocked
\ir ../../B/schema.sql
