UPDATE task SET scheduled = ?2, run_at = ?3, claims = ?4, lost = 0, started_at = ?5 WHERE id = ?1
