UPDATE task SET scheduled = 2, claims = ?2, lost = 0, started_at = ?3, options = ?4, links = links | ?5 WHERE id = ?1
