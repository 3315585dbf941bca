SELECT k.name, q.name FROM lane n JOIN queue q ON q.id = n.queue JOIN kind k ON k.id = n.kind WHERE n.id = ?
