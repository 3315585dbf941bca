DELETE FROM lease
WHERE first BETWEEN (SELECT max(first) FROM lease WHERE first <= ?1) AND ?2
  AND NOT EXISTS (SELECT 1 FROM task WHERE id BETWEEN first AND last)
