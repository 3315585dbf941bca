UPDATE task_group SET running = ?, full_at = ?, held_back = ?, token_at = ?, below_minimum = ?, saved_in = ? WHERE id = ?
