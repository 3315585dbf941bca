INSERT INTO instance (task, length, bytes, status) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (task) DO UPDATE SET length = length + ?2, bytes = bytes + ?3, status = coalesce(?4, status)
