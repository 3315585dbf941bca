SELECT id FROM task t
WHERE sub_queue IN (SELECT id FROM sub_queue WHERE queue = ?1)
  AND ((scheduled = 1 AND ?2) OR (scheduled = 0 AND ?3) OR (scheduled = 2 AND ?5))
  AND NOT EXISTS (SELECT 1 FROM lease WHERE first = (SELECT max(first) FROM lease WHERE first <= t.id) AND last >= t.id)
ORDER BY id LIMIT ?4
