t.sub_queue IN (SELECT n.id FROM sub_queue n JOIN task_group g ON g.id = n.task_group WHERE n.task_group > 0 AND g.name = ?)
