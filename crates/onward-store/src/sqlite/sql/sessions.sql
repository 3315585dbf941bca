SELECT s.id, s.name, s.opened_at, s.lease, count(l.task)
FROM session s LEFT JOIN lease l ON l.session = s.id
GROUP BY s.id ORDER BY s.id
