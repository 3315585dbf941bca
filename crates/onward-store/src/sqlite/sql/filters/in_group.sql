t.lane IN (SELECT n.id FROM lane n JOIN task_group g ON g.id = n.task_group WHERE n.task_group > 0 AND g.name = ?)
