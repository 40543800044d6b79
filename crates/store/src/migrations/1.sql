-- Everything that happened, in order. Never changed, never deleted.
CREATE TABLE events (
    pos  INTEGER PRIMARY KEY,
    task TEXT    NOT NULL,
    seq  INTEGER NOT NULL,
    at   INTEGER NOT NULL,
    kind TEXT    NOT NULL,
    body TEXT    NOT NULL,
    UNIQUE (task, seq)
);

-- Where each task stands: its events, folded, in the transaction that saved them.
CREATE TABLE tasks (
    id            TEXT    PRIMARY KEY,
    parent        TEXT    NOT NULL,
    above         TEXT,
    root          TEXT    NOT NULL,
    depth         INTEGER NOT NULL,
    description   TEXT    NOT NULL,
    agent         TEXT    NOT NULL,
    model         TEXT,
    context       TEXT    NOT NULL,
    host          TEXT    NOT NULL,
    max_tokens    INTEGER,
    max_cost      INTEGER,
    max_time      INTEGER,
    max_turns     INTEGER,
    max_calls     INTEGER,
    launched_at   INTEGER NOT NULL,
    batch         INTEGER NOT NULL,
    run           INTEGER NOT NULL,
    session       TEXT,
    state         TEXT    NOT NULL,
    since         INTEGER,
    stage         TEXT,
    ended_at      INTEGER,
    ran           INTEGER,
    error         TEXT,
    stopping      INTEGER NOT NULL,
    tokens        INTEGER NOT NULL,
    cost          INTEGER NOT NULL,
    turns         INTEGER NOT NULL,
    calls         INTEGER NOT NULL,
    tools         TEXT    NOT NULL,
    last_activity INTEGER,
    below_tokens  INTEGER NOT NULL,
    below_cost    INTEGER NOT NULL,
    below_turns   INTEGER NOT NULL,
    below_calls   INTEGER NOT NULL,
    before_tokens INTEGER NOT NULL,
    before_cost   INTEGER NOT NULL,
    before_turns  INTEGER NOT NULL,
    before_calls  INTEGER NOT NULL,
    retrieved_at  INTEGER,
    cleared       INTEGER NOT NULL,
    owner         TEXT,
    seq           INTEGER NOT NULL,
    -- For finding tasks: not ended; holds a slot; needs an owner; the event that queued it.
    live          INTEGER NOT NULL,
    taken         INTEGER NOT NULL,
    unfinished    INTEGER NOT NULL,
    born          INTEGER NOT NULL,
    place         INTEGER NOT NULL
);
CREATE INDEX tasks_of_parent  ON tasks (parent, batch);
CREATE INDEX tasks_of_root    ON tasks (root);
CREATE INDEX tasks_of_session ON tasks (session)              WHERE session IS NOT NULL;
CREATE INDEX tasks_by_age     ON tasks (born);
CREATE INDEX tasks_live       ON tasks (parent)               WHERE live = 1;
CREATE INDEX tasks_below      ON tasks (above)                WHERE above IS NOT NULL;
CREATE INDEX tasks_taken      ON tasks (depth, model, owner)  WHERE taken = 1;
CREATE INDEX tasks_taken_of   ON tasks (parent, owner)        WHERE taken = 1;
CREATE INDEX tasks_queued     ON tasks (depth, place)         WHERE state = 'queued';
CREATE INDEX tasks_unfinished ON tasks (owner, state)         WHERE unfinished = 1;
CREATE INDEX tasks_stopping   ON tasks (owner)                WHERE stopping = 1;

-- What parents have to be told: written with the end of a task, kept when it is done.
CREATE TABLE notices (
    pos        INTEGER PRIMARY KEY,
    id         TEXT    NOT NULL UNIQUE,
    task       TEXT    NOT NULL,
    parent     TEXT    NOT NULL,
    host       TEXT    NOT NULL,
    visible    TEXT    NOT NULL,
    hidden     TEXT    NOT NULL,
    state      TEXT    NOT NULL,
    not_before INTEGER NOT NULL,
    attempted  INTEGER,
    attempts   INTEGER NOT NULL,
    settled_at INTEGER,
    why        TEXT
);
CREATE INDEX notices_pending ON notices (not_before) WHERE state = 'pending';
CREATE INDEX notices_of_task ON notices (task);
CREATE INDEX notices_to      ON notices (parent)     WHERE state = 'pending';

-- Processes that look after tasks, and until when they are believed to be alive.
CREATE TABLE owners (
    id    TEXT    PRIMARY KEY,
    until INTEGER NOT NULL
);

-- Callers that wait for a task: its result reaches them without a notice.
CREATE TABLE waits (
    id      INTEGER PRIMARY KEY,
    task    TEXT    NOT NULL,
    session TEXT    NOT NULL,
    until   INTEGER NOT NULL
);
CREATE INDEX waits_for_task ON waits (task);
