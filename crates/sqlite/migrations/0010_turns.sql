-- Fair shares: the tenants of one priority take turns.

-- What an operator set for a tenant. A tenant without a row has the defaults.
CREATE TABLE tenant (
    name   TEXT NOT NULL PRIMARY KEY,
    weight INTEGER NOT NULL CHECK (weight BETWEEN 1 AND 1000)
) STRICT, WITHOUT ROWID;
