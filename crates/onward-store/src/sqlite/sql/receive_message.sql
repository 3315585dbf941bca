INSERT INTO instance (task, received) VALUES (?1, 1)
ON CONFLICT (task) DO UPDATE SET received = received + 1
RETURNING received, length, hold
