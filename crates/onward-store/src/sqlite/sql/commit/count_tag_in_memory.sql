-- Counts a task more that has a tag; returns the number of the tag.
INSERT INTO temp.tag (key, value, number, tasks)
VALUES (?1, ?2, (SELECT coalesce(max(number), 0) + 1 FROM temp.tag), 1)
ON CONFLICT (key, value) DO UPDATE SET tasks = tasks + 1
RETURNING number
