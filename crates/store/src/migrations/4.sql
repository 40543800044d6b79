-- Which database this is, and which file: a copy of it is another one. Sealed with a key of its
-- user's, which is not in here.
CREATE TABLE identity (
    id   TEXT    NOT NULL,
    path BLOB    NOT NULL,
    file TEXT    NOT NULL,
    seal TEXT    NOT NULL
);

-- Leases are measured by a clock that nobody can set; it begins anew with every boot. `until` stays
-- the time of day, which versions before go by.
ALTER TABLE owners ADD COLUMN boot   TEXT    NOT NULL DEFAULT '';
ALTER TABLE owners ADD COLUMN steady INTEGER NOT NULL DEFAULT 0;
