INSERT INTO document (collection, key, version, changed_at, content_type, value0, value1, value2, value3, content)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (collection, key) DO UPDATE SET
    version = excluded.version, changed_at = excluded.changed_at, content_type = excluded.content_type,
    value0 = excluded.value0, value1 = excluded.value1, value2 = excluded.value2, value3 = excluded.value3,
    content = excluded.content
