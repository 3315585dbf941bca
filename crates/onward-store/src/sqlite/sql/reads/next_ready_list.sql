SELECT lane, at, task FROM ready
WHERE lane > ?
ORDER BY lane, at, task
LIMIT 1
