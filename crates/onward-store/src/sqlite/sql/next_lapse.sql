SELECT min(lease_until) FROM session s WHERE EXISTS (SELECT 1 FROM lease WHERE session = s.id)
