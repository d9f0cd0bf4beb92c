-- Operators look for the few jobs that wait for a time, another try, another job or a person, behind a backlog of millions that wait for nothing but
-- their turn: along the primary key a list came to the first of them after a hundred empty parts. Pending and running jobs are not in it, so
-- recording, claiming and finishing such a job write nothing to it; their updates could not be HOT before either, for `state` is in other indexes.

CREATE INDEX job_waiting ON orchestrix.job (state, id) WHERE state IN ('created', 'blocked', 'scheduled', 'retrying');
