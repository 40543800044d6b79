-- What the launcher of a task has set, and its seal, were part of the host's name:
-- `engine:/folder//?{…}//#seal`, and `opencode:http://…//?{…}//#seal`, of which `{…}` stays a part.
ALTER TABLE tasks ADD COLUMN settings TEXT NOT NULL DEFAULT '';
ALTER TABLE tasks ADD COLUMN seal     TEXT NOT NULL DEFAULT '';

UPDATE tasks SET seal = substr(host, -64), host = substr(host, 1, length(host) - 67)
    WHERE substr(host, -67, 3) = '//#';
UPDATE tasks
    SET settings = substr(host, instr(host, '//?') + 3), host = substr(host, 1, instr(host, '//?') - 1)
    WHERE host LIKE 'engine:/%//?%';

UPDATE notices SET host = substr(host, 1, length(host) - 67) WHERE substr(host, -67, 3) = '//#';
UPDATE notices SET host = substr(host, 1, instr(host, '//?') - 1) WHERE host LIKE 'engine:/%//?%';

-- One word for it, in lists as on disk.
UPDATE tasks SET state = 'error' WHERE state = 'failed';
