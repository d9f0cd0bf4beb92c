-- Sets the settings of a tenant. ?1 name, ?2 weight.
-- Uses the primary key.
INSERT INTO tenant (name, weight) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET weight = excluded.weight
