INSERT OR REPLACE INTO collecting (lane, began_with, members, bytes, began_at, size, deadline, ripe_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
