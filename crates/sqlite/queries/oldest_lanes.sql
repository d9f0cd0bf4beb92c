-- Lanes of a queue by the time of eligibility in their claim key. ?1 queue, ?2 limit. Relies on lane_by_age.
SELECT job_type, tenant, rank, eligible_at FROM lane WHERE queue = ?1
ORDER BY eligible_at LIMIT ?2
