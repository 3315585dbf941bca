SELECT CASE WHEN NOT EXISTS (SELECT 1 FROM affinity WHERE id = 1) THEN 1
       ELSE (SELECT min(a.id) + 1 FROM affinity a WHERE NOT EXISTS (SELECT 1 FROM affinity b WHERE b.id = a.id + 1)) END
