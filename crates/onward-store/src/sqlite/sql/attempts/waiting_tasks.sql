SELECT t.id, t.sub_queue, t.priority, t.scheduled, t.run_at, t.claims, t.attempts, t.lost, t.cancel_requested, t.started_at,
       t.expires_at, t.options, t.key, NULL, NULL, NULL, t.links, t.submitted_at, t.payload
FROM rarray(?1) a CROSS JOIN task t ON t.id = a.value
