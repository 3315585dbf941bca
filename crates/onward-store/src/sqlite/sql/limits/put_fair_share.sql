INSERT INTO fair_share (queue, task_group, guaranteed, shared) VALUES (?, ?, ?, ?)
ON CONFLICT (queue, task_group) DO UPDATE SET guaranteed = excluded.guaranteed, shared = excluded.shared
