-- 300,000 live rows before the cursor (each costs what a dead one would); how many pages does each form of the predicate read?
create table c(id int primary key, queue text not null, priority smallint not null, rank smallint not null, eligible_at timestamptz not null, pad text default repeat('x', 100));
insert into c select g, 'q', p, -p, '2026-01-01'::timestamptz + g * interval '1 ms' from (select g, (9 - g / 100000)::smallint as p from generate_series(1, 400000) g) x;
create index c_mixed on c(queue, priority desc, eligible_at, id);
create index c_rank on c(queue, rank, eligible_at, id);
create index c_expr on c(queue, (-priority), eligible_at, id);
vacuum analyze c;
create function pages(q text) returns text language plpgsql as $$
declare j json; begin
  execute 'explain (analyze, buffers, format json) ' || q into j;
  return format('%s pages, %s ms', coalesce((j->0->'Plan'->>'Shared Hit Blocks')::int, 0) + coalesce((j->0->'Plan'->>'Shared Read Blocks')::int, 0), round((j->0->>'Execution Time')::numeric, 2));
end $$;
select 'no cursor, from the head', pages($$select ctid from c where queue = 'q' order by rank, eligible_at, id limit 100$$);
select 'filter only: offset 350000', pages($$select ctid from c where queue = 'q' order by rank, eligible_at, id offset 350000 limit 100$$);
select 'row comparison on the negated column', pages($$select ctid from c where queue = 'q' and (rank, eligible_at, id) > (-6::smallint, '2026-01-01'::timestamptz + 350000 * interval '1 ms', 350000) order by rank, eligible_at, id limit 100$$);
select 'row comparison with the queue inside', pages($$select ctid from c where (queue, rank, eligible_at, id) > ('q', -6::smallint, '2026-01-01'::timestamptz + 350000 * interval '1 ms', 350000) and queue = 'q' order by queue, rank, eligible_at, id limit 100$$);
select 'row comparison on the expression -priority', pages($$select ctid from c where queue = 'q' and (-priority, eligible_at, id) > (-6, '2026-01-01'::timestamptz + 350000 * interval '1 ms', 350000) order by -priority, eligible_at, id limit 100$$);
select 'row comparison on -priority, index has priority desc', pages($$select ctid from c where queue = 'q' and (-priority, eligible_at, id) > (-6, '2026-01-01'::timestamptz + 350000 * interval '1 ms', 350000) order by priority desc, eligible_at, id limit 100$$);
select 'or: priority < p or (= and ...)', pages($$select ctid from c where queue = 'q' and (priority < 6 or (priority = 6 and (eligible_at, id) > ('2026-01-01'::timestamptz + 350000 * interval '1 ms', 350000))) order by priority desc, eligible_at, id limit 100$$);
select 'priority <= p and (the or)', pages($$select ctid from c where queue = 'q' and priority <= 6 and (priority < 6 or (eligible_at, id) > ('2026-01-01'::timestamptz + 350000 * interval '1 ms', 350000)) order by priority desc, eligible_at, id limit 100$$);
