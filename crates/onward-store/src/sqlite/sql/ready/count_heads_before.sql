SELECT count(*) FROM (SELECT 1 FROM claimable_head WHERE head_list = ? AND share_tag < ? AND list < ? LIMIT ?)
