-- The outbox has more than notices to parents now: what a child asks, and to a child messages and
-- answers. `parent` is the session that a post is for. What was there are notices.
ALTER TABLE notices ADD COLUMN kind     TEXT    NOT NULL DEFAULT 'notice';
ALTER TABLE notices ADD COLUMN run      INTEGER NOT NULL DEFAULT 0;
-- The host's name for the question that a post is about, and the answer to it.
ALTER TABLE notices ADD COLUMN question TEXT;
ALTER TABLE notices ADD COLUMN reply    TEXT;
