-- How a job stands that others wait for, and whose it is. ?1 id.
SELECT state, tenant FROM job WHERE id = ?1
