INSERT INTO queue_size (queue, waiting, scheduled, blocked) VALUES (?, ?, ?, ?)
ON CONFLICT (queue) DO UPDATE SET
    waiting = waiting + excluded.waiting,
    scheduled = scheduled + excluded.scheduled,
    blocked = blocked + excluded.blocked
