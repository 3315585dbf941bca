t.lane IN (SELECT n.id FROM lane n JOIN queue q ON q.id = n.queue WHERE q.name = ?)
