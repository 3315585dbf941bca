-- The first of the tasks that depend on one, and whether each depends on others, too; the second tells that there are more.
SELECT
  d.dependent,
  EXISTS (SELECT 1 FROM dependency o WHERE o.dependent = d.dependent AND o.task <> d.task)
FROM dependency d
WHERE d.task = ?1 AND d.dependent <= ?2
ORDER BY d.dependent
LIMIT 2
