SELECT n.queue, min(r.task) FROM (SELECT lane, min(task) AS task FROM ready GROUP BY lane) AS r JOIN lane n ON n.id = r.lane
GROUP BY n.queue
