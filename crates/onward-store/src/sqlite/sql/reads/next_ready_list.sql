SELECT list, at, task FROM ready
WHERE list > ?
ORDER BY list, at, task
LIMIT 1
