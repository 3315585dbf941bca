UPDATE task SET scheduled = ?2, run_at = ?3, claims = ?4, attempts = ?5, lost = ?6, started_at = ?7 WHERE id = ?1
