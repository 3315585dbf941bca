-- The lowest 34 bits of a line's number are those of its lane.
SELECT n.queue, min(r.task) FROM (SELECT lane, min(task) AS task FROM ready GROUP BY lane) AS r JOIN lane n ON n.id = r.lane & 17179869183
GROUP BY n.queue
