INSERT INTO day_start (day, queue, state, ended)
SELECT ?, n.queue, s.state, sum(s.ended) FROM statistics s JOIN lane n ON n.id = s.lane GROUP BY n.queue, s.state
