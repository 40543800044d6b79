-- The sessions of the built-in agent.
CREATE TABLE sessions (
    id         TEXT    PRIMARY KEY,
    task       TEXT    UNIQUE,
    title      TEXT    NOT NULL,
    agent      TEXT    NOT NULL,
    model      TEXT    NOT NULL,
    system     TEXT    NOT NULL,
    delegates  INTEGER NOT NULL,
    workspace  TEXT    NOT NULL,
    base       TEXT,
    base_until INTEGER,
    begun      INTEGER NOT NULL,
    driver     TEXT,
    deleted    INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX sessions_of_a_person ON sessions (workspace, begun) WHERE task IS NULL;

-- What happened in them, in order. Never changed, never deleted.
CREATE TABLE entries (
    session TEXT    NOT NULL,
    seq     INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    post    TEXT,
    kind    TEXT    NOT NULL,
    body    TEXT    NOT NULL,
    PRIMARY KEY (session, seq)
) WITHOUT ROWID;
-- Where runs begin and end. Most entries are neither, and cost nothing here.
CREATE INDEX prompts ON entries (session, seq) WHERE kind = 'prompted';
CREATE INDEX ends ON entries (session, seq) WHERE kind = 'ended';
CREATE UNIQUE INDEX entries_by_name ON entries (session, post) WHERE post IS NOT NULL;
