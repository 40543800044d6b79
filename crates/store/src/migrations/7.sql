-- Lists stop at what they show: the newest tasks, of a session, or in a state.
DROP INDEX tasks_by_age;
CREATE INDEX tasks_shown    ON tasks (born)         WHERE cleared = 0;
CREATE INDEX tasks_shown_of ON tasks (parent, born) WHERE cleared = 0;
CREATE INDEX tasks_shown_in ON tasks (state, born)  WHERE cleared = 0;
CREATE INDEX tasks_shown_of_in ON tasks (parent, state, born) WHERE cleared = 0;
UPDATE tasks SET state = 'error' WHERE state = 'failed';

-- What tasks are searched for, by every three characters in a row; the number of each is its `born`.
CREATE VIRTUAL TABLE task_words USING fts5 (
    words, content = '', contentless_delete = 1, detail = none,
    tokenize = 'trigram case_sensitive 1'
);
INSERT INTO task_words (rowid, words) SELECT born, search_words(description, agent, id) FROM tasks;

-- The open batch of a parent is found among its live tasks, and a batch is counted without reading
-- its tasks.
DROP INDEX tasks_live;
CREATE INDEX tasks_live ON tasks (parent, cleared, batch) WHERE live = 1;
DROP INDEX tasks_of_parent;
CREATE INDEX tasks_of_parent ON tasks (parent, batch, live);

-- What can be deleted when it is old: trees of tasks, and sessions of persons. Events may be
-- deleted with their task now; their numbers are not used again.
CREATE INDEX tasks_ended    ON tasks (ended_at, id) WHERE live = 0 AND above IS NULL;
CREATE INDEX sessions_based ON sessions (base)      WHERE base IS NOT NULL;
-- Not `task IS NULL`: there is a unique index of tasks, which SQLite would rather use for that.
CREATE INDEX sessions_by_age ON sessions (begun, id) WHERE coalesce(task, '') = '';

-- Where runs of tasks begin and end, and what was said to them: found without reading what happened in
-- between, which is nearly all.
CREATE INDEX run_events ON events (task, seq)
    WHERE kind IN ('launched', 'resumed', 'started', 'prompted', 'messaged', 'ended');

-- What happened in sessions. Never changed; deleted with its session. A table without a rowid
-- rounds every long row up to whole pages. A long body is compressed: `packed` has it then, and
-- `body` nothing. `used` is what the session has used up to here, in the entries where that matters:
-- a run is summed up from where it begins and where it stands.
ALTER TABLE entries RENAME TO entries_before;
DROP INDEX prompts;
DROP INDEX ends;
DROP INDEX entries_by_name;
CREATE TABLE entries (
    pos     INTEGER PRIMARY KEY,
    session TEXT    NOT NULL,
    seq     INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    post    TEXT,
    kind    TEXT    NOT NULL,
    body    TEXT,
    packed  BLOB,
    used    TEXT,
    UNIQUE (session, seq)
);
INSERT INTO entries (session, seq, at, post, kind, body, packed, used)
    SELECT session, seq, at, post, kind, CASE WHEN packed IS NULL THEN body END, packed,
           used_until(session, kind, body)
    FROM (SELECT *, pack_text(body) AS packed FROM entries_before) ORDER BY session, seq;
DROP TABLE entries_before;
CREATE INDEX prompts ON entries (session, seq) WHERE kind = 'prompted';
CREATE INDEX ends ON entries (session, seq) WHERE kind = 'ended';
CREATE UNIQUE INDEX entries_by_name ON entries (session, post) WHERE post IS NOT NULL;

-- Ends of runs are told together. Until it is sent, a notice has what is to be told of its end
-- (`ending`); then the first of them has the text of all, and the others are told with it
-- (`told_with`). What was pending before is told as it was worded.
ALTER TABLE notices ADD COLUMN batch      INTEGER;
ALTER TABLE notices ADD COLUMN ending     TEXT;
ALTER TABLE notices ADD COLUMN told_with  TEXT;
ALTER TABLE notices ADD COLUMN told_whole INTEGER NOT NULL DEFAULT 0;
CREATE INDEX notices_told_with ON notices (told_with) WHERE told_with IS NOT NULL;
CREATE INDEX notices_sent      ON notices (parent, batch)
    WHERE kind = 'notice' AND attempted IS NOT NULL AND told_with IS NULL;
