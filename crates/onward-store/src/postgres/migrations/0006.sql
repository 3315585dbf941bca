-- What runs, by session: first what is to stop, which is asked for with each claim and each sign of life and is nearly nothing.
DROP INDEX {schema}.task_session;
CREATE INDEX task_session ON {schema}.task (session, cancel_requested, id) WHERE session IS NOT NULL;
