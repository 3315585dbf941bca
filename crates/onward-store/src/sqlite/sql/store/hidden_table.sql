SELECT t.name FROM temp.sqlite_schema t
WHERE t.type IN ('table', 'view') AND EXISTS (SELECT 1 FROM main.sqlite_schema m WHERE m.name = t.name COLLATE NOCASE)
LIMIT 1
