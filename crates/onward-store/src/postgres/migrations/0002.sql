ALTER TABLE {schema}.task ADD COLUMN instance bytea;
ALTER TABLE {schema}.ended ADD COLUMN instance bytea;

CREATE TABLE {schema}.turn (
    task bigint NOT NULL,
    first bigint NOT NULL,
    events bigint NOT NULL,
    chunk bytea NOT NULL,
    PRIMARY KEY (task, first)
);
