DELETE FROM lease
WHERE first IN (SELECT (SELECT max(first) FROM lease WHERE first <= a.value) FROM rarray(?1) a)
  AND NOT EXISTS (SELECT 1 FROM task WHERE id BETWEEN first AND last)
