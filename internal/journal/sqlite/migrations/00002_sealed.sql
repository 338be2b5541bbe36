-- What is sealed: what people said to questions, and secrets beside the logs.

-- +goose Up

ALTER TABLE questions ADD COLUMN said_key TEXT NOT NULL DEFAULT ''; -- '': said is plain; else it is base64

-- Values that are kept until a time, always sealed: answers that wait for a
-- person, what placeholders stand for.
CREATE TABLE secrets (
    tenant TEXT    NOT NULL,
    kind   TEXT    NOT NULL,
    owner  TEXT    NOT NULL,
    name   TEXT    NOT NULL,
    v      INTEGER NOT NULL,
    key_id TEXT    NOT NULL,
    body   BLOB    NOT NULL,
    until  INTEGER NOT NULL,
    PRIMARY KEY (tenant, kind, owner, name)
) STRICT, WITHOUT ROWID;

CREATE INDEX secrets_until ON secrets (until);
