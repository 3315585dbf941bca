SELECT d.dependent, d.task
FROM rarray(?) a CROSS JOIN dependency d ON d.dependent = a.value
ORDER BY d.dependent, d.task
