SELECT s.id, s.name, s.opened_at, s.lease,
       (SELECT count(*) FROM lease l CROSS JOIN task t ON t.id BETWEEN l.first AND l.last WHERE l.session = s.id),
       s.serves, s.process, s.lease_until
FROM session s
ORDER BY s.id
