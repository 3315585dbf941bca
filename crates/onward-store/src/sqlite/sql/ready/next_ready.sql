SELECT at, task FROM ready
WHERE list = ? AND (at, task) > (?, ?)
ORDER BY at, task LIMIT ?
