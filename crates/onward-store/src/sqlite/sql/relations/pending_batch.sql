SELECT first_item, items, bytes, began_at, size, deadline, ready_at
FROM pending_batch
WHERE sub_queue = ?
