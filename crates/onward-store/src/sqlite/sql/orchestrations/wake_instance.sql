UPDATE task SET scheduled = 0, run_at = ?2 WHERE id = ?1
