INSERT INTO day_start (day, queue, state, ended)
SELECT ?, n.queue, s.state, sum(s.ended) FROM statistics s JOIN sub_queue n ON n.id = s.sub_queue GROUP BY n.queue, s.state
