SELECT n.task_group, count(*) FROM lease l CROSS JOIN task t ON t.id BETWEEN l.first AND l.last JOIN sub_queue n ON n.id = t.sub_queue
WHERE n.task_group > 0 GROUP BY n.task_group
