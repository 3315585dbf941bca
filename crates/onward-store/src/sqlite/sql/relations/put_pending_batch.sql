INSERT OR REPLACE INTO collecting (sub_queue, began_with, members, bytes, began_at, size, deadline, ripe_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
