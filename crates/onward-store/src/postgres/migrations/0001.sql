CREATE TABLE {schema}.task (
    id bigint NOT NULL PRIMARY KEY,
    state smallint NOT NULL,
    queue text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    grp text COLLATE "C" NOT NULL,
    series text COLLATE "C" NOT NULL,
    place bigint NOT NULL,
    priority smallint NOT NULL,
    run_at bigint NOT NULL,
    expires_at bigint,
    overdue_at bigint,
    session bigint,
    cancel_requested boolean NOT NULL,
    parent bigint,
    submitted_at bigint NOT NULL,
    key bytea,
    payload bytea,
    result bytea,
    finished_at bigint,
    end_number bigint,
    end_entry bigint,
    body json NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

CREATE TABLE {schema}.ended (LIKE {schema}.task INCLUDING DEFAULTS, PRIMARY KEY (id));

CREATE INDEX task_waiting ON {schema}.task (queue, kind, grp, series, place, id) WHERE state = 2;
CREATE INDEX task_scheduled ON {schema}.task (run_at, id) WHERE state = 1;
CREATE INDEX task_expiring ON {schema}.task (expires_at, id) WHERE expires_at IS NOT NULL AND session IS NULL;
CREATE INDEX task_overdue ON {schema}.task (overdue_at, id) WHERE overdue_at IS NOT NULL;
CREATE INDEX task_session ON {schema}.task (session, id) WHERE session IS NOT NULL;
CREATE INDEX task_parent ON {schema}.task (parent) WHERE parent IS NOT NULL;
CREATE INDEX ended_end ON {schema}.ended (end_number);
CREATE INDEX ended_parent ON {schema}.ended (parent) WHERE parent IS NOT NULL;

CREATE TABLE {schema}.tag (
    tag bytea NOT NULL,
    task bigint NOT NULL,
    PRIMARY KEY (tag, task)
);
CREATE INDEX tag_task ON {schema}.tag (task);

CREATE TABLE {schema}.taken (
    kind text COLLATE "C" NOT NULL,
    key bytea NOT NULL,
    task bigint NOT NULL,
    until bigint,
    PRIMARY KEY (kind, key)
);
CREATE INDEX taken_until ON {schema}.taken (until) WHERE until IS NOT NULL;

CREATE TABLE {schema}.wait (
    task bigint NOT NULL,
    dependent bigint NOT NULL,
    PRIMARY KEY (task, dependent)
);
CREATE INDEX wait_dependent ON {schema}.wait (dependent, task);

CREATE TABLE {schema}.member (
    member bigint NOT NULL PRIMARY KEY,
    bundle bigint NOT NULL
);
CREATE INDEX member_bundle ON {schema}.member (bundle, member);

CREATE TABLE {schema}.item (
    sort text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    body text NOT NULL,
    PRIMARY KEY (sort, name)
) WITH (fillfactor = 50);

CREATE TABLE {schema}.log (
    entry bigint NOT NULL PRIMARY KEY,
    next_task bigint NOT NULL,
    changes text NOT NULL
);

CREATE TABLE {schema}.statistics (
    kind text COLLATE "C" NOT NULL PRIMARY KEY,
    completed bigint NOT NULL,
    failed bigint NOT NULL,
    dead bigint NOT NULL,
    cancelled bigint NOT NULL,
    expired bigint NOT NULL,
    attempts bigint NOT NULL,
    wait bigint NOT NULL,
    run bigint NOT NULL,
    run_maximum bigint NOT NULL,
    io_tasks bigint NOT NULL,
    io numeric[] NOT NULL
);

CREATE TABLE {schema}.day (
    day bigint NOT NULL,
    queue text COLLATE "C" NOT NULL,
    completed bigint NOT NULL,
    failed bigint NOT NULL,
    dead bigint NOT NULL,
    cancelled bigint NOT NULL,
    expired bigint NOT NULL,
    PRIMARY KEY (day, queue)
);

CREATE SEQUENCE {schema}.last_task MINVALUE 0 START 0;
CREATE SEQUENCE {schema}.last_session MINVALUE 0 START 0;
CREATE SEQUENCE {schema}.ends MINVALUE 0 START 0;
CREATE SEQUENCE {schema}.last_entry MINVALUE 0 START 0;
CREATE SEQUENCE {schema}.last_item MINVALUE 0 START 0;

CREATE TABLE {schema}.writer (
    id bigint NOT NULL PRIMARY KEY,
    batch bigint NOT NULL,
    at timestamptz NOT NULL
) WITH (fillfactor = 10);
