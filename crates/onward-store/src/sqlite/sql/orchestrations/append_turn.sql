INSERT INTO instance (task, length, bytes, status, awaits, version) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
ON CONFLICT (task) DO UPDATE SET length = length + ?2, bytes = bytes + ?3, status = coalesce(?4, status), awaits = ?5,
    version = coalesce(?6, version)
