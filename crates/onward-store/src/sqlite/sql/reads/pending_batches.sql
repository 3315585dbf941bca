SELECT c.items, c.size, c.bytes, c.began_at, c.ready_at, q.name, k.name, g.name
FROM pending_batch c CROSS JOIN sub_queue n ON n.id = c.sub_queue JOIN queue q ON q.id = n.queue JOIN kind k ON k.id = n.kind
LEFT JOIN task_group g ON g.id = n.task_group
WHERE ?1 IS NULL OR q.name = ?1
ORDER BY c.ready_at, c.first_item
LIMIT ?2
