SELECT n.queue, count(*)
FROM lease l CROSS JOIN task t ON t.id BETWEEN l.first AND l.last JOIN lane n ON n.id = t.lane
GROUP BY n.queue
