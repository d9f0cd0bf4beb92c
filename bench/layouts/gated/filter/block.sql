insert into ready(id, created_at, eligible_at, rank, queue, job_type, tenant, payload, ckey) select uuid7(g), now(), now(), 0, 'q', 'email.send', 't1', 'x', 'k1' from generate_series(1, 1000000) g;
