-- Settings as a session of this role begins with them: what a transaction sets for itself does not show. $1 names.
SELECT name, reset_val, unit FROM pg_settings WHERE name = ANY ($1::text[]) AND reset_val IS NOT NULL
