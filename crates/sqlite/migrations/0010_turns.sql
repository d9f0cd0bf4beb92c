-- Fair shares: the tenants of one priority take turns.

-- What an operator set for a tenant. A tenant without a row has the defaults.
CREATE TABLE tenant (
    name   TEXT NOT NULL PRIMARY KEY,
    weight INTEGER NOT NULL CHECK (weight BETWEEN 1 AND 1000)
) STRICT, WITHOUT ROWID;

-- A lane now holds the claimable jobs of one queue, type, tenant and priority. A claim finds the tenants of a priority
-- by their positions on the ring, and reads no more lanes than it returns jobs.

DROP INDEX job_claim;
CREATE INDEX job_claim ON job (queue, job_type, tenant, rank, eligible_at, id) WHERE state = 'pending';

DROP TABLE lane;
CREATE TABLE lane (
    queue       TEXT NOT NULL,
    job_type    TEXT NOT NULL,
    rank        INTEGER NOT NULL,
    -- The position of the tenant on the ring.
    ring        INTEGER NOT NULL,
    tenant      TEXT NOT NULL,
    -- The claim key of the first job, or of one that was first before. Never greater than that of a claimable job.
    eligible_at INTEGER NOT NULL,
    id          BLOB NOT NULL,
    -- Whether the queue is paused. The indexes that claims of several queues read hold no lane of a paused queue.
    paused      INTEGER NOT NULL,
    PRIMARY KEY (queue, job_type, rank, ring, tenant)
) STRICT, WITHOUT ROWID;

-- The program defines ring_position.
INSERT INTO lane (queue, job_type, rank, ring, tenant, eligible_at, id, paused)
SELECT queue, job_type, rank, ring_position(tenant), tenant, eligible_at, id,
       EXISTS (SELECT 1 FROM queue WHERE name = first.queue AND paused)
FROM (SELECT queue, job_type, tenant, rank, eligible_at, id,
             row_number() OVER (PARTITION BY queue, job_type, tenant, rank ORDER BY eligible_at, id) AS place
      FROM job WHERE state = 'pending') AS first
WHERE place = 1;

-- One index for each way in which a request can name lanes, besides naming queue and type: the primary key serves that.
CREATE INDEX lane_any ON lane (rank, ring, eligible_at, id) WHERE paused = 0;
CREATE INDEX lane_by_type ON lane (job_type, rank, ring, eligible_at, id) WHERE paused = 0;
CREATE INDEX lane_by_queue ON lane (queue, rank, ring, eligible_at, id) WHERE paused = 0;
-- For the age of a queue's oldest job.
CREATE INDEX lane_by_age ON lane (queue, eligible_at);
