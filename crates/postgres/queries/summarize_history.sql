-- Summarizes new page ranges of history_finished, a BRIN index. Gives up after 100 ms if another session holds the
-- lock: a vacuum would be cancelled by a longer wait. Ranges summarized before that stay summarized.
WITH bound AS MATERIALIZED (SELECT set_config('lock_timeout', '100ms', true) AS lock_timeout)
SELECT sum(brin_summarize_new_values(part.inhrelid))
FROM bound, pg_inherits part WHERE part.inhparent = 'orchestrix.history_finished'::regclass AND bound.lock_timeout IS NOT NULL
