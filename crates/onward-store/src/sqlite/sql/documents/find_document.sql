SELECT d.key, d.version, d.changed_at, d.content_type, d.value0, d.value1, d.value2, d.value3, d.content
FROM document_collection c JOIN document d ON d.collection = c.id WHERE c.name = ?1 AND d.key = ?2
