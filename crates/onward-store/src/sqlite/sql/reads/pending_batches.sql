SELECT c.members, c.size, c.bytes, c.began_at, c.ripe_at, q.name, k.name, g.name
FROM collecting c CROSS JOIN sub_queue n ON n.id = c.sub_queue JOIN queue q ON q.id = n.queue JOIN kind k ON k.id = n.kind
LEFT JOIN task_group g ON g.id = n.task_group
WHERE ?1 IS NULL OR q.name = ?1
ORDER BY c.ripe_at, c.began_with
LIMIT ?2
