-- Fair shares: the tenants of one priority take turns. See docs/adr/0005.

-- What an operator set for a tenant. A tenant without a row has the defaults.
CREATE TABLE orchestrix.tenant (
    name   text COLLATE "C" PRIMARY KEY,
    weight integer NOT NULL DEFAULT 1 CHECK (weight BETWEEN 1 AND 1000)
);
