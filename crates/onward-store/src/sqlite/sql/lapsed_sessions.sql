SELECT id FROM session s
WHERE lease_until <= ? AND EXISTS (SELECT 1 FROM lease WHERE session = s.id)
ORDER BY id
