t.lane IN (SELECT n.id FROM lane n JOIN kind k ON k.id = n.kind WHERE k.name = ?)
