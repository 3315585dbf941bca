SELECT m.task
FROM member_of m CROSS JOIN task t ON t.id = m.task
WHERE m.bundle = ? AND t.cancel_requested > 0
ORDER BY m.task
