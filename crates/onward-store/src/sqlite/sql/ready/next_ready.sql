SELECT sort_key, task FROM ready
WHERE list = ? AND (sort_key, task) > (?, ?)
ORDER BY sort_key, task LIMIT ?
