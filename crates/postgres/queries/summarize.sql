-- Gives ranges of history that have none yet a summary in history_finished, and gives up soon where somebody else is at work: a vacuum would be
-- cancelled by whoever waits for it. Whatever was summarized until then stays so.
WITH bound AS MATERIALIZED (SELECT set_config('lock_timeout', '100ms', true) AS patience)
SELECT sum(brin_summarize_new_values(part.inhrelid))
FROM bound, pg_inherits part WHERE part.inhparent = 'orchestrix.history_finished'::regclass AND bound.patience IS NOT NULL
