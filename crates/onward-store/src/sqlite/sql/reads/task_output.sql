WITH head AS MATERIALIZED (
    SELECT claim, attempt, CASE ?2 WHEN 0 THEN stdout ELSE stderr END AS ended,
        (SELECT coalesce(sum(length), 0) FROM output_piece WHERE task = ?1 AND stream = ?2) AS kept
    FROM output WHERE task = ?1
)
SELECT h.claim, h.attempt, h.ended, h.kept, p.at, p.length, p.bytes
FROM head h LEFT JOIN output_piece p ON p.task = ?1 AND p.stream = ?2
    AND p.at >= coalesce((SELECT max(at) FROM output_piece WHERE task = ?1 AND stream = ?2 AND at <= ?3), 0)
ORDER BY p.at
