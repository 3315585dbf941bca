SELECT at, task FROM ready
WHERE lane = ? AND (at, task) > (?, ?)
ORDER BY at, task LIMIT ?
