SELECT id, sub_queue, submitted_at FROM (
    SELECT * FROM (SELECT id, sub_queue, submitted_at FROM task WHERE id >= ?1 AND id < ?2 ORDER BY id LIMIT ?3)
    UNION ALL
    SELECT * FROM (SELECT id, sub_queue, submitted_at FROM history WHERE id >= ?1 AND id < ?2 ORDER BY id LIMIT ?3)
)
ORDER BY id LIMIT ?3
