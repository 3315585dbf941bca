UPDATE task SET scheduled = 2, claims = ?2, lost = 0, started_at = ?3, expires_at = NULL, links = links | ?4 WHERE id = ?1
