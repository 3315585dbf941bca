t.sub_queue IN (SELECT n.id FROM sub_queue n JOIN queue q ON q.id = n.queue WHERE q.name = ?)
