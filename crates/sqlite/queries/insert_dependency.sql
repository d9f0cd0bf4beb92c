-- Inserts the edge from a job to a parent. ?1 child, ?2 parent, ?3 whether the parent has finished.
INSERT INTO dependency (child, parent, met) VALUES (?1, ?2, ?3)
