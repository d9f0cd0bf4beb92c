-- One row per lane, a queue and a job type with claimable jobs. A claim reads lanes in the order of their first jobs,
-- and so never looks at more lanes than it returns jobs.

CREATE TABLE lane (
    queue       TEXT NOT NULL,
    job_type    TEXT NOT NULL,
    -- The claim key of the first job, or of one that was first before. Never greater than that of a claimable job.
    rank        INTEGER NOT NULL,
    eligible_at INTEGER NOT NULL,
    id          BLOB NOT NULL,
    -- Whether the queue is paused. Indexes hold no lane of a paused queue.
    paused      INTEGER NOT NULL,
    PRIMARY KEY (queue, job_type)
) STRICT, WITHOUT ROWID;

INSERT INTO lane (queue, job_type, rank, eligible_at, id, paused)
SELECT queue, job_type, rank, eligible_at, id, EXISTS (SELECT 1 FROM queue WHERE name = first.queue AND paused)
FROM (SELECT queue, job_type, rank, eligible_at, id,
             row_number() OVER (PARTITION BY queue, job_type ORDER BY rank, eligible_at, id) AS place
      FROM job WHERE state = 'pending') AS first
WHERE place = 1;

-- One index for each way in which a request can name lanes.
CREATE INDEX lane_any ON lane (rank, eligible_at, id) WHERE paused = 0;
CREATE INDEX lane_by_type ON lane (job_type, rank, eligible_at, id) WHERE paused = 0;
CREATE INDEX lane_by_queue ON lane (queue, rank, eligible_at, id) WHERE paused = 0;
