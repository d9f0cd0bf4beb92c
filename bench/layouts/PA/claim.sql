with u as (update jobs set state = 1, attempt = attempt + 1, lease_no = lease_no + 1, lease_secret = (select gen_random_uuid()),
      lease_expires_at = now() + interval '1 min', worker = 'worker-1'
    where ctid = any(array(select ctid from jobs where state = 0 and queue = 'q' and eligible_at <= now() /*cursor*/
      order by rank, eligible_at, id limit :k for update skip locked))
    returning id, lease_secret, payload)
select coalesce(array_agg(u.id), '{}') as ids, coalesce(array_agg(lease_secret), '{}') as toks, max(length(coalesce(u.payload, p.payload))) as m
  from u left join payloads p on p.id = u.id and u.payload is null \gset
