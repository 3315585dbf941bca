-- What waits for orchestrations, each message a row: with it in one value, each that came had all of them written again. Who brings the tables up to
-- date makes rows of those that wait.
CREATE TABLE {schema}.message (
    task bigint NOT NULL,
    number bigint NOT NULL,
    body bytea NOT NULL,
    PRIMARY KEY (task, number)
);
