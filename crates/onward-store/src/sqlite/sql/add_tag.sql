INSERT INTO tag (key, value, number, tasks) VALUES (?1, ?2, ?3, 1)
ON CONFLICT (key, value) DO UPDATE SET tasks = tasks + 1
RETURNING number
