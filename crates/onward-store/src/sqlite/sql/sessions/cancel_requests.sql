SELECT t.id FROM task t INDEXED BY task_cancel_requested
JOIN lease l ON l.first = (SELECT max(first) FROM lease WHERE first <= t.id) AND l.last >= t.id
WHERE t.cancel_requested > 0 AND l.session = ?
ORDER BY t.id
