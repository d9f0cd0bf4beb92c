-- Shared by every layout: ids like UUID v7, payloads that hardly compress, and the partitioned history.
create function uuid7(n int) returns uuid language sql volatile as $$
  select (lpad(to_hex((extract(epoch from clock_timestamp()) * 1000)::bigint), 12, '0') || '7' || lpad(to_hex(n % 4096), 3, '0')
          || 'a' || substr(md5(random()::text), 1, 15))::uuid $$;
create function uuid7_floor(t timestamptz) returns uuid language sql immutable as $$
  select (lpad(to_hex((extract(epoch from t) * 1000)::bigint), 12, '0') || '00000000000000000000')::uuid $$;
-- one partition a day, for the last :days days, today and tomorrow
create table setting as select :days as days;
create procedure add_days(parent text) language plpgsql as $$
declare d date; begin
  for d in select generate_series(current_date - (select days from setting), current_date + 1, interval '1 day') loop
    execute format('create table %I partition of %I for values from (%L) to (%L)', parent || to_char(d, '_YYYYMMDD'), parent,
      uuid7_floor(d at time zone 'UTC'), uuid7_floor((d + 1) at time zone 'UTC'));
  end loop; end $$;
create table pool(n int, payload text);
alter table pool alter payload set storage external;
insert into pool select n, left((select string_agg(case :'kind' when 'hex' then md5(n::text || i || random())
    else format('{"id":%s,"name":"user %s","email":"user%s@example.com","active":true},', n * i, i, (random() * 1e6)::int) end, '')
  from generate_series(1, :size / 32 + 1) i), :size) from generate_series(1, :batch) n;
analyze pool;
