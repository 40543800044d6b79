-- The skill a task runs, and on what terms; the trace of its newest run.
ALTER TABLE tasks ADD COLUMN skill TEXT;
ALTER TABLE tasks ADD COLUMN chain TEXT;
ALTER TABLE sessions ADD COLUMN terms TEXT;

-- Where each trace begins: with a run of a task, or with a person's prompt in a session. The
-- names are in the events and entries that begin the runs.
CREATE TABLE chains (
    id      TEXT    PRIMARY KEY,
    parent  TEXT,
    task    TEXT,
    run     INTEGER,
    session TEXT,
    prompt  TEXT,
    begun   INTEGER NOT NULL
);
CREATE INDEX chains_below   ON chains (parent)        WHERE parent IS NOT NULL;
CREATE INDEX chains_of_task ON chains (task)          WHERE task IS NOT NULL;
CREATE INDEX chains_of_session ON chains (session)    WHERE session IS NOT NULL;
CREATE INDEX chains_by_age  ON chains (begun)         WHERE parent IS NULL;
