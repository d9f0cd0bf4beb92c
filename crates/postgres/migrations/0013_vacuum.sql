-- The leader vacuums these tables about twice a second, and skips a table that autovacuum holds. At the end of a vacuum
-- autovacuum tries for up to five seconds to get the lock that shrinks the file. In a steady flow of jobs it never gets
-- that lock, and meanwhile dead rows make the file larger. VACUUM (TRUNCATE) still shrinks a file on request.
ALTER TABLE orchestrix.job SET (vacuum_truncate = false);
ALTER TABLE orchestrix.ready SET (vacuum_truncate = false);
ALTER TABLE orchestrix.depth_delta SET (vacuum_truncate = false);
