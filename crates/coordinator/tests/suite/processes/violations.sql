-- Every violation, as a sentence.
SELECT format('%s of %s in epoch %s by %s, while %s led', l.kind, l.job, l.epoch, l.node, coalesce(t.node, 'no node'))
FROM audit.line l LEFT JOIN audit.takeover t USING (epoch)
WHERE l.kind IN ('promoted', 'reaped') AND t.node IS DISTINCT FROM l.node
UNION ALL
SELECT format('%s writers in epoch %s: %s', count(DISTINCT node), epoch, string_agg(DISTINCT node, ', '))
FROM audit.line WHERE kind IN ('promoted', 'reaped') GROUP BY epoch HAVING count(DISTINCT node) > 1
UNION ALL
SELECT format('%s was due at %s and promoted %s times', d.job, d.due, count(p.job))
FROM audit.line d LEFT JOIN audit.line p ON p.kind = 'promoted' AND p.job = d.job AND p.due = d.due
WHERE d.kind = 'due' GROUP BY d.job, d.due HAVING count(p.job) <> 1
UNION ALL
SELECT format('%s was promoted at %s, before its start time %s', job, at, due) FROM audit.line WHERE kind = 'promoted' AND at < due
UNION ALL
SELECT format('lease %s of %s was reaped %s times', counter, job, count(*))
FROM audit.line WHERE kind = 'reaped' GROUP BY job, counter HAVING count(*) > 1
UNION ALL
SELECT format('%s is unfinished: %s', id, state) FROM orchestrix.job
