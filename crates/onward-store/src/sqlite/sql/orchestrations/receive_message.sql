INSERT INTO instance (task, received) VALUES (?1, ?2)
ON CONFLICT (task) DO UPDATE SET received = ?2
