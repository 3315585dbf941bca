INSERT INTO instance (task, length, bytes, status, awaits) VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (task) DO UPDATE SET length = length + ?2, bytes = bytes + ?3, status = coalesce(?4, status), awaits = ?5
