INSERT OR REPLACE INTO progress (task, fraction, message, at, done, total) VALUES (?, ?, ?, ?, ?, ?)
