SELECT list, sort_key, task FROM ready
WHERE list > ?
ORDER BY list, sort_key, task
LIMIT 1
