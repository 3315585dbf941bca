SELECT t.day, q.name, t.state, t.ended FROM (
    SELECT day, queue, state, ended FROM day_start WHERE day >= ?1
    UNION ALL
    SELECT NULL, n.queue, s.state, sum(s.ended) FROM statistics s JOIN sub_queue n ON n.id = s.sub_queue GROUP BY n.queue, s.state
) AS t JOIN queue q ON q.id = t.queue
