t.id IN (SELECT g.task FROM tag k CROSS JOIN task_tag g ON g.tag = k.number WHERE k.key >= ? AND k.key < ?)
