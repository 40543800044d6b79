-- Some sessions can be sent nothing: they ask, and are told then. No worker looks at what is for them.
ALTER TABLE notices ADD COLUMN pulled INTEGER NOT NULL DEFAULT 0;
DROP INDEX notices_pending;
CREATE INDEX notices_pending ON notices (not_before) WHERE state = 'pending' AND pulled = 0;

-- Which session a process of another agent shows. After `/clear` it is another one.
CREATE TABLE shown_sessions (
    process TEXT    PRIMARY KEY,
    session TEXT    NOT NULL,
    since   INTEGER NOT NULL
);
