t.id IN (SELECT child FROM child WHERE parent = ?)
