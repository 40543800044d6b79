-- What the eighth format has added.
DROP INDEX notices_pending;
ALTER TABLE notices DROP COLUMN pulled;
CREATE INDEX notices_pending ON notices (not_before) WHERE state = 'pending';
DROP TABLE shown_sessions;

-- What the seventh format has changed, changed back: for tests that make a file of an earlier one.
DROP INDEX tasks_shown;
DROP INDEX tasks_shown_of;
DROP INDEX tasks_shown_in;
DROP INDEX tasks_shown_of_in;
DROP INDEX run_events;
DROP TABLE task_words;
DROP INDEX sessions_by_age;
DROP INDEX tasks_ended;
DROP INDEX sessions_based;
DROP INDEX tasks_live;
DROP INDEX tasks_of_parent;
CREATE INDEX tasks_by_age    ON tasks (born);
CREATE INDEX tasks_live      ON tasks (parent) WHERE live = 1;
CREATE INDEX tasks_of_parent ON tasks (parent, batch);

ALTER TABLE entries RENAME TO entries_later;
DROP INDEX prompts;
DROP INDEX ends;
DROP INDEX entries_by_name;
CREATE TABLE entries (
    session TEXT    NOT NULL,
    seq     INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    post    TEXT,
    kind    TEXT    NOT NULL,
    body    TEXT    NOT NULL,
    PRIMARY KEY (session, seq)
) WITHOUT ROWID;
INSERT INTO entries SELECT session, seq, at, post, kind, body FROM entries_later;
DROP TABLE entries_later;
CREATE INDEX prompts ON entries (session, seq) WHERE kind = 'prompted';
CREATE INDEX ends ON entries (session, seq) WHERE kind = 'ended';
CREATE UNIQUE INDEX entries_by_name ON entries (session, post) WHERE post IS NOT NULL;
DROP INDEX notices_sent;
DROP INDEX notices_told_with;
ALTER TABLE notices DROP COLUMN batch;
ALTER TABLE notices DROP COLUMN ending;
ALTER TABLE notices DROP COLUMN told_with;
ALTER TABLE notices DROP COLUMN told_whole;
