SELECT began_with, members, bytes, began_at, size, deadline, ripe_at
FROM collecting
WHERE sub_queue = ?
