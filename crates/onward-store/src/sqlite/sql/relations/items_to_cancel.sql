SELECT m.task
FROM batch_item m CROSS JOIN task t ON t.id = m.task
WHERE m.batch = ? AND t.cancel_requested > 0
ORDER BY m.task
