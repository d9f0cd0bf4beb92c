# The further parts of `run`; see there for the helpers.
big() { # a million pending, a million dead under a held snapshot, a million finished
  local l n; for l in ${LAYOUTS:-A2 B H}; do
    fresh $l; enqueue $l '' 1060000; cycles $l pend1m_unanalyzed 8000 100
    sql -c 'vacuum analyze' -c checkpoint; cycles $l pend1m 16000 100; cycles $l pend1m 16000 1000
    PGAPPNAME=holder sql -c 'begin isolation level repeatable read' -c 'select count(*) from pg_class' -c 'select pg_sleep(900)' >/dev/null 2>&1 & sleep 0.5
    (sed "s/:n/960000/" "$l/drain.sql") | sql
    IFS='|' read -r r t i < <(sql -f "$l/head.sql")
    cycles $l dead1m 800 100
    CURSOR="and (rank, eligible_at, id) >= ($r, '${t/ /T}'::timestamptz, '$i'::uuid)" cycles $l dead1m_cursor 12000 100
    sql -c "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'holder'" >/dev/null; wait %?PGAPPNAME 2>/dev/null || true
    sql -c 'vacuum analyze' -c checkpoint; cycles $l hist1m 16000 100; cycles $l hist1m 16000 1000
  done
}
finished() { # longer runs over a million finished rows, with the planner's default ways and with PLAN
  local l; for l in B H; do
    fresh $l; enqueue $l '' 1160000; sed "s/:n/1000000/" "$l/drain.sql" | sql; sql -c 'vacuum analyze' -c checkpoint
    cycles $l hist1m_long 48000 100; PGOPTIONS="$PLAN" cycles $l hist1m_long_plan 48000 100; PGOPTIONS="$PLAN" cycles $l hist1m_long_plan 60000 1000
  done
}
pay() { # is a payload of this size cheaper inside the row or beside it?
  local s l; for s in 256 512 1024 1900 4096 8192; do
    for l in B A2; do SIZE=$s fresh $l; enqueue $l inline$s 16000; sql -c 'vacuum analyze'; cycles $l inline$s 14000 100; done
    for l in PB PA; do SIZE=$s fresh $l; THR=0 enqueue $l side$s 16000; sql -c 'vacuum analyze'; cycles $l side$s 14000 100; done
    SIZE=$s fresh H; enqueue H own$s 16000; sql -c 'vacuum analyze'; cycles H own$s 14000 100
  done
}
store() { # storage of large payloads in the side table
  local kind c x; for kind in hex json; do for c in extended:pglz extended:lz4 external:pglz; do
    export KIND=$kind STORE=${c%:*} COMP=${c#*:}; x=$kind-$STORE-$COMP
    SIZE=8192 BATCH=1000 fresh PB; BATCH=1000 enqueue PB 8k-$x 10000; sql -c 'vacuum analyze'; cycles PB 8k-$x 8000 100
    SIZE=65536 BATCH=100 fresh PB; BATCH=100 enqueue PB 64k-$x 1600; sql -c 'vacuum analyze'; cycles PB 64k-$x 1200 100
  done; done; unset KIND STORE COMP
}
beat() { # beat NAME TABLE: four workers extend 1,000 leases each, 20 times
  sql -c "create table beat as select n / 1000 as client, array_agg(id) as ids, array_agg(lease_secret) as toks
    from (select row_number() over () - 1 as n, id, lease_secret from $2 where lease_secret is not null) x group by 1" -c 'analyze beat'
  bench 4 20 <(echo "update $2 j set lease_expires_at = now() + interval '1 min' from (select unnest(ids) as id, unnest(toks) as tok from beat where client = :client_id) t where j.id = t.id and j.lease_secret = t.tok;")
  sleep 0.7
  rec "$1" heartbeat leases "$(per 80000 "$SECS")"; rec "$1" heartbeat wal "$(per "$WAL" 80000)"
  rec "$1" heartbeat hot_pct "$(sql -c "select 100 * n_tup_hot_upd / greatest(n_tup_upd, 1) from pg_stat_user_tables where relname = '$2'")"
}
heartbeat() {
  local x l t ff; for x in A:jobs:100 A2:jobs:100 A2:jobs:85 A2:jobs:70 B:leased:100 B:leased:70 H:leased:100 H:leased:70 H:leased:45; do
    IFS=: read -r l t ff <<<"$x"
    FF=$ff fresh $l; enqueue $l '' 8000; K=1000 bench 1 4 $l/claim.sql
    [ $t = leased ] || sql -c 'select pg_stat_reset()' >/dev/null
    sql -c 'vacuum analyze'; beat $l-ff$ff $t
  done
  fresh H; sql -c 'create table worker_session(id int primary key, expires_at timestamptz) with (fillfactor = 50)' -c 'insert into worker_session select generate_series(0, 3), now()'
  bench 4 200 <(echo "update worker_session set expires_at = now() + interval '1 min' where id = :client_id;")
  rec one-row-per-worker heartbeat beats "$(per 800 "$SECS")"; rec one-row-per-worker heartbeat wal_per_beat "$(per "$WAL" 800)"
}
cursor() { # which form of "after the cursor" becomes the start of an index range? pages read over 300,000 dead entries
  fresh B; sql -f cursor.sql | tee cursor.txt
}
tenants() { # 10,000 tenants, one of which has half of all jobs
  local l; for l in tenants/none tenants/lanes tenants/lanes4 tenants/tags; do
    fresh $l; enqueue $l t10k 200000; sql -c 'vacuum analyze'; cycles $l t10k 20000 100; cycles $l t10k 40000 1000
  done
  for l in tenants/none tenants/lanes tenants/tags; do # and one tenant alone
    fresh $l; ONE=1 enqueue $l t1 100000; sql -c 'vacuum analyze'; cycles $l t1 20000 100
  done
}
gated() { # a million jobs whose concurrency key is exhausted stand before the others
  local l; for l in gated/none gated/filter gated/flag gated/apart; do
    fresh $l; [ $l = gated/none ] || sql -f $l/block.sql; enqueue $l '' 40000; sql -c 'vacuum analyze'
    case $l in gated/filter) cycles $l blocked1m 400 100 ;; *) cycles $l blocked1m 20000 100 ;; esac
    [ ! -f $l/release.sql ] || { bench 1 50 $l/release.sql; rec $l release1000 jobs "$(per 50000 "$SECS")"; rec $l release1000 wal "$(per "$WAL" 50000)"; }
  done
}
variant() { # variant NAME LAYOUT CASE SED-SCRIPT: cycles with the claim and finish of LAYOUT rewritten
  mkdir -p "$D/$1"; sed "$4" "$2/claim.sql" >"$D/$1/claim.sql"; sed "$4" "$2/finish.sql" >"$D/$1/finish.sql"
  (cd "$D"; cycles "$1" "$3" "${JOBS:-8000}" 100; cycles "$1" "$3" "${JOBS:-8000}" 1000)
}
traps() { # statements that look alike and are not
  fresh A; enqueue A '' 120000; sql -c 'vacuum analyze'
  variant A-plain A traps ''
  variant A-by-id A traps 's/where ctid = any(array(select ctid/where id = any(array(select id/'
  variant A-in-subselect A traps 's/where ctid = any(array(select ctid/where id in (select id/; s/skip locked))/skip locked)/'
  fresh A; enqueue A '' 160000; sql -c 'vacuum analyze' # the lease index is empty when it is analyzed
  JOBS=40000 variant A-finish-says-state A traps_long 's/where j.id = t.id/where j.state = 1 and j.id = t.id/'
  fresh H; enqueue H '' 200000   # no statistics at all, then with them; planned by each rule of the plan cache; then with PLAN
  variant H-unanalyzed H traps ''
  PGOPTIONS="$PLAN" variant H-unanalyzed-plan H traps ''
  sql -c 'vacuum analyze'; variant H-analyzed H traps ''
  PGOPTIONS="$PLAN" variant H-analyzed-plan H traps ''
  MODE=extended variant H-analyzed-unprepared H traps ''
}
# what the claim, finish and heartbeat statements want from the planner, whatever the statistics say
PLAN='-c plan_cache_mode=force_generic_plan -c enable_seqscan=off -c enable_bitmapscan=off -c enable_hashjoin=off -c enable_mergejoin=off -c enable_sort=off -c jit=off'
days() { # does the number of partitions cost the claim that joins them? H-leaf names the one partition the ids are in
  local d leaf; leaf=job_$(date -u +%Y%m%d); for d in 1 6 30; do
    export DAYS=$d PGOPTIONS="$PLAN"
    fresh B; enqueue B '' 80000; sql -c 'vacuum analyze'; cycles B days$d 4000 10; cycles B days$d 40000 100
    fresh H; enqueue H '' 80000; sql -c 'vacuum analyze'; cycles H days$d 4000 10; cycles H days$d 40000 100
    fresh H; enqueue H '' 80000; sql -c 'vacuum analyze'; mkdir -p "$D/H-leaf"; sed "s/join job using/join $leaf using/" H/claim.sql >"$D/H-leaf/claim.sql"; cp H/finish.sql "$D/H-leaf"
    (cd "$D"; cycles H-leaf days$d 4000 10; cycles H-leaf days$d 40000 100)
  done; unset DAYS; export PGOPTIONS=
}
report() { # medians over the rounds
  sort -t$'\t' -k1,1 -k2,2 -k3,3 -k4,4n "$OUT" | awk -F'\t' '
    function flush() { if (n) printf "%-18s %-26s %-12s %10.0f  (%d runs, %d to %d)\n", a, b, c, (v[int((n + 1) / 2)] + v[int(n / 2) + 1]) / 2, n, v[1], v[n]; n = 0 }
    { if ($1 FS $2 FS $3 != key) { flush(); key = $1 FS $2 FS $3; a = $1; b = $2; c = $3 } v[++n] = $4 + 0 }
    END { flush() }'
}
