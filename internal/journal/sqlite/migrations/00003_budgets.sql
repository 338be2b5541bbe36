-- What was spent, and the blocks that processes have taken of what may be. The
-- laws of these tables are in the package comment of budget. Money is in
-- nano-dollars; a day is counted from 1970, UTC, and 0 is an account of no day.

-- +goose Up

CREATE TABLE budget_accounts (
    tenant           TEXT    NOT NULL,
    day              INTEGER NOT NULL,
    kind             TEXT    NOT NULL,
    name             TEXT    NOT NULL,
    v                INTEGER NOT NULL,  -- form of the row
    tokens           INTEGER NOT NULL,  -- spent
    usd              INTEGER NOT NULL,
    estimated_tokens INTEGER NOT NULL,  -- of it: reported by nobody
    estimated_usd    INTEGER NOT NULL,
    unpriced_tokens  INTEGER NOT NULL,  -- of it: their price is not known
    PRIMARY KEY (tenant, day, kind, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE budget_blocks (
    tenant      TEXT    NOT NULL,
    day         INTEGER NOT NULL,
    kind        TEXT    NOT NULL,
    name        TEXT    NOT NULL,
    owner       TEXT    NOT NULL,  -- a process
    v           INTEGER NOT NULL,
    tokens      INTEGER NOT NULL,  -- what it may still spend
    usd         INTEGER NOT NULL,
    held_tokens INTEGER NOT NULL,  -- of it: reserved by calls under way
    held_usd    INTEGER NOT NULL,
    until       INTEGER NOT NULL,  -- microseconds since 1970: the end of its lease
    PRIMARY KEY (tenant, day, kind, name, owner)
) STRICT, WITHOUT ROWID;
