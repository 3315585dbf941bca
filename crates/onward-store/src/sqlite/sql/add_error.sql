INSERT INTO attempt_error (task, number, attempt, at, message)
SELECT ?1, coalesce(max(number) + 1, 0), ?2, ?3, ?4 FROM attempt_error WHERE task = ?1
RETURNING number
