-- no fairness: the plain claim order (layout B)
\ir ../../B/schema.sql
