SELECT l.id, l.queue, l.kind, l.task_group,
       (SELECT b.id FROM sub_queue b
        WHERE b.queue = l.queue AND b.kind = l.kind AND b.task_group = 0 AND b.orchestration = l.orchestration),
       q.name, k.name, g.name, l.orchestration
FROM sub_queue l JOIN queue q ON q.id = l.queue JOIN kind k ON k.id = l.kind LEFT JOIN task_group g ON g.id = l.task_group
WHERE (l.id > ?1 AND l.id < ?2) OR l.id > ?3
