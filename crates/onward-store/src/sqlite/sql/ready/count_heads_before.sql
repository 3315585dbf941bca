SELECT count(*) FROM (SELECT 1 FROM group_head WHERE base = ? AND rank < ? AND lane < ? LIMIT ?)
