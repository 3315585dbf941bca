DELETE FROM attempt_error WHERE task = ?1 AND number = (
    SELECT number FROM attempt_error WHERE task = ?1 ORDER BY number LIMIT 1 OFFSET 1
)
