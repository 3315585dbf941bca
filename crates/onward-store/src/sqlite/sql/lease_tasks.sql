INSERT OR FAIL INTO lease (task, session, claim, started_at)
SELECT t.id, ?2, t.claims + 1, ?3 FROM rarray(?1) a CROSS JOIN task t ON t.id = a.value
