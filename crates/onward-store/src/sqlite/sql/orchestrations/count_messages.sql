SELECT instance.received - message.number + 1 FROM message JOIN instance ON instance.task = message.task
WHERE message.task = ?
ORDER BY message.number LIMIT 1
