WITH head AS MATERIALIZED (
    SELECT o.claim, o.attempt, CASE ?2 WHEN 0 THEN o.stdout ELSE o.stderr END AS ended, h.result,
        (SELECT coalesce(sum(length), 0) FROM output_piece
         WHERE task = ?1 AND stream = ?2 AND (h.result IS NOT NULL OR length(bytes) > 0)) AS kept
    FROM output o LEFT JOIN history h ON h.id = o.task WHERE o.task = ?1
)
SELECT h.claim, h.attempt, h.ended, h.kept, p.at, p.length, CASE length(p.bytes) WHEN 0 THEN h.result ELSE p.bytes END
FROM head h LEFT JOIN output_piece p ON p.task = ?1 AND p.stream = ?2
    AND p.at >= coalesce((SELECT max(at) FROM output_piece WHERE task = ?1 AND stream = ?2 AND at <= ?3), 0)
ORDER BY p.at
