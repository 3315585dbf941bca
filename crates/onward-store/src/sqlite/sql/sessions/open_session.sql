INSERT INTO session (name, process, opened_at, lease, lease_until, serves) VALUES (?, ?, ?, ?, ?, ?)
