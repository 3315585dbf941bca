SELECT k.name, q.name, g.name
FROM sub_queue n JOIN queue q ON q.id = n.queue JOIN kind k ON k.id = n.kind LEFT JOIN task_group g ON g.id = n.task_group
WHERE n.id = ?
