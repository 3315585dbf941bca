UPDATE task_group SET running = ?, full_at = ?, blocked = ?, token_at = ?, below_minimum = ?, saved_in = ? WHERE id = ?
