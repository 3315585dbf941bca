DELETE FROM dependency
WHERE task = ?1 AND dependent = (SELECT min(dependent) FROM dependency WHERE task = ?1 AND dependent <= ?2)
RETURNING dependent
