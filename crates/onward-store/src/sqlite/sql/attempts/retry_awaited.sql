UPDATE task SET scheduled = ?2, run_at = ?3, attempts = ?4, expires_at = ?5, links = links & ~?6 WHERE id = ?1
