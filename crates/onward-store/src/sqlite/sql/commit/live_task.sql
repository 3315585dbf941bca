SELECT t.id, t.sub_queue, t.priority, t.scheduled, t.run_at, t.claims, t.attempts, t.lost, t.cancel_requested,
       t.started_at, t.expires_at, t.options, t.key, l.session, l.claim, l.started_at, t.links
FROM task t LEFT JOIN lease l ON l.first = (SELECT max(first) FROM lease WHERE first <= t.id) AND l.last >= t.id
WHERE t.id = ?
