-- The journal. Times are microseconds since 1970, UTC; NULL is none. The laws of
-- these tables are in the package comments of journal and of this package.

-- +goose Up

CREATE TABLE store (
    one       INTEGER PRIMARY KEY CHECK (one = 1),
    made_at   INTEGER NOT NULL,
    key_proof BLOB    NOT NULL  -- a digest that only the store's own key gives
) STRICT;

CREATE TABLE runs (
    tenant         TEXT    NOT NULL,
    run            TEXT    NOT NULL,
    v              INTEGER NOT NULL,  -- form of the row
    kind           TEXT    NOT NULL,
    parent         TEXT    NOT NULL,
    session        TEXT    NOT NULL,
    profile        TEXT    NOT NULL,
    starter        TEXT    NOT NULL,
    capture        TEXT    NOT NULL,
    profile_digest TEXT    NOT NULL,
    workdir        TEXT    NOT NULL,
    host           TEXT    NOT NULL,  -- '': any worker may advance it
    status         TEXT    NOT NULL,
    reason         TEXT    NOT NULL,
    created_at     INTEGER NOT NULL,
    ended_at       INTEGER,
    purge_at       INTEGER,           -- when payloads are to go next
    wake_at        INTEGER,           -- when a worker should take it, if nobody holds it
    woken          INTEGER NOT NULL,  -- 1: something came that its worker has not seen
    cancel_by      TEXT    NOT NULL,  -- who wants it ended
    lease_owner    TEXT    NOT NULL,  -- '': nobody
    lease_until    INTEGER NOT NULL,
    fence          INTEGER NOT NULL,
    seq            INTEGER NOT NULL,  -- the last event, and its link
    chain          BLOB    NOT NULL,
    snapshot_seq   INTEGER NOT NULL,
    snapshot_bytes INTEGER NOT NULL,
    since_bytes    INTEGER NOT NULL,
    PRIMARY KEY (tenant, run)
) STRICT, WITHOUT ROWID;

CREATE INDEX runs_wake  ON runs (wake_at)     WHERE wake_at IS NOT NULL;
CREATE INDEX runs_lease ON runs (lease_owner) WHERE lease_owner <> '';
CREATE INDEX runs_purge ON runs (purge_at)    WHERE purge_at IS NOT NULL;

CREATE INDEX runs_session ON runs (tenant, session, run) WHERE session <> '';
CREATE INDEX runs_parent  ON runs (tenant, parent, run)  WHERE parent <> '';

CREATE TABLE events (
    tenant    TEXT    NOT NULL,
    run       TEXT    NOT NULL,
    seq       INTEGER NOT NULL,
    at        INTEGER NOT NULL,
    kind      TEXT    NOT NULL,
    version   INTEGER NOT NULL,  -- form of the payload
    content   INTEGER NOT NULL,  -- 0 structure, 1 text, 2 raw
    key_id    TEXT    NOT NULL,  -- '': the payload is plain
    payload   BLOB,              -- NULL: in blobs, or purged
    purged_at INTEGER,
    digest    BLOB    NOT NULL,
    chain     BLOB    NOT NULL
) STRICT;

CREATE UNIQUE INDEX events_seq ON events (tenant, run, seq);

-- Large payloads, once a tenant. refs counts the runs that hold one.
CREATE TABLE blobs (
    tenant TEXT    NOT NULL,
    digest BLOB    NOT NULL,
    v      INTEGER NOT NULL,
    key_id TEXT    NOT NULL,
    refs   INTEGER NOT NULL,
    body   BLOB    NOT NULL,
    PRIMARY KEY (tenant, digest)
) STRICT, WITHOUT ROWID;

CREATE TABLE holds (
    tenant  TEXT    NOT NULL,
    run     TEXT    NOT NULL,
    digest  BLOB    NOT NULL,
    content INTEGER NOT NULL,
    PRIMARY KEY (tenant, run, digest)
) STRICT, WITHOUT ROWID;

CREATE TABLE snapshots (
    tenant  TEXT    NOT NULL,
    run     TEXT    NOT NULL,
    seq     INTEGER NOT NULL,
    version INTEGER NOT NULL,
    key_id  TEXT    NOT NULL,
    state   BLOB    NOT NULL,
    digest  BLOB    NOT NULL,
    PRIMARY KEY (tenant, run)
) STRICT, WITHOUT ROWID;

CREATE TABLE questions (
    tenant     TEXT    NOT NULL,
    question   TEXT    NOT NULL,
    v          INTEGER NOT NULL,
    key_id     TEXT    NOT NULL,
    run        TEXT    NOT NULL,
    about      TEXT    NOT NULL,
    subject    TEXT    NOT NULL,
    digest     BLOB    NOT NULL,
    shown      BLOB,             -- NULL: purged
    not_by     TEXT    NOT NULL,
    asked_at   INTEGER NOT NULL,
    expires_at INTEGER,
    state      TEXT    NOT NULL,
    decider    TEXT    NOT NULL,
    said       TEXT    NOT NULL,
    decided_at INTEGER,
    used_at    INTEGER,
    PRIMARY KEY (tenant, question)
) STRICT, WITHOUT ROWID;

CREATE INDEX questions_run   ON questions (tenant, run, question);
CREATE INDEX questions_state ON questions (tenant, state, question);
