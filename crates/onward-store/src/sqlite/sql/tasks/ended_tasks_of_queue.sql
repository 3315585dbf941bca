SELECT id FROM history
WHERE sub_queue IN (SELECT id FROM sub_queue WHERE queue = ?1) AND state = ?2
ORDER BY id LIMIT ?3
