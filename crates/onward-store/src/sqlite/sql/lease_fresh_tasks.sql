INSERT OR FAIL INTO lease (task, session, claim, started_at)
SELECT value, ?2, 1, ?3 FROM rarray(?1)
