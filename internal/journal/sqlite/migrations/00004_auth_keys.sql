-- Keys by which callers are told apart. None is ever deleted.

-- +goose Up

CREATE TABLE auth_keys (
    id         TEXT    NOT NULL PRIMARY KEY, -- what stands between sl_ and the secret
    v          INTEGER NOT NULL,
    name       TEXT    NOT NULL,
    role       TEXT    NOT NULL,
    said       TEXT    NOT NULL, -- JSON: labels, limits, profiles
    digest     BLOB    NOT NULL, -- of the token, under the store's key
    created_at INTEGER NOT NULL, -- Unix microseconds, as all times here
    created_by TEXT    NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER,
    revoked_by TEXT    NOT NULL
) STRICT;

CREATE UNIQUE INDEX auth_keys_name ON auth_keys (name) WHERE revoked_at IS NULL;
