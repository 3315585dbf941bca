INSERT OR REPLACE INTO pending_batch (sub_queue, first_item, items, bytes, began_at, size, deadline, ready_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
