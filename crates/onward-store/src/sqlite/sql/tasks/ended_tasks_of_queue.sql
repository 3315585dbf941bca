SELECT id FROM history
WHERE lane IN (SELECT id FROM lane WHERE queue = ?1) AND state = ?2
ORDER BY id LIMIT ?3
