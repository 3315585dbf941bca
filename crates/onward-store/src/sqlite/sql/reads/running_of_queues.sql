SELECT n.queue, count(*)
FROM lease l CROSS JOIN task t ON t.id BETWEEN l.first AND l.last JOIN sub_queue n ON n.id = t.sub_queue
GROUP BY n.queue
