t.id IN (SELECT g.task FROM tag k CROSS JOIN tagged g ON g.tag = k.number WHERE k.key >= ?)
