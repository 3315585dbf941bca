t.sub_queue IN (SELECT n.id FROM sub_queue n JOIN kind k ON k.id = n.kind WHERE k.name = ?)
