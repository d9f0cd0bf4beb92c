-- Settings as a new session of this role gets them; SET LOCAL of this transaction does not show. $1 names.
SELECT name, reset_val, unit FROM pg_settings WHERE name = ANY ($1::text[]) AND reset_val IS NOT NULL
