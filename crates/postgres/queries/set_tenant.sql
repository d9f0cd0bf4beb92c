-- Changes the settings of a tenant; null leaves a setting as it is. $1 name, $2 weight. Relies on the primary key.
INSERT INTO orchestrix.tenant AS t (name, weight) VALUES ($1, coalesce($2::integer, 1))
ON CONFLICT (name) DO UPDATE SET weight = coalesce($2, t.weight)
RETURNING name, weight
