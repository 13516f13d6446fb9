-- What trigger plugins decided and from what, so that it can be decided again: one row a call. `record` is
-- the host's own encoding.
CREATE TABLE decisions (
    app_id BLOB NOT NULL,
    id BLOB NOT NULL,
    record BLOB NOT NULL,
    PRIMARY KEY (app_id, id)
) STRICT;

-- Whose data a decision holds. A decision goes with any of them.
CREATE TABLE decision_subjects (
    app_id BLOB NOT NULL,
    decision_id BLOB NOT NULL,
    subject_id BLOB NOT NULL,
    PRIMARY KEY (app_id, decision_id, subject_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX decisions_of_subject ON decision_subjects (subject_id, decision_id);

-- Configurations that decisions were made under, once each. `used_at` is when one was last noted to be used.
CREATE TABLE decision_configs (
    app_id BLOB NOT NULL,
    digest BLOB NOT NULL,
    config TEXT NOT NULL,
    properties TEXT NOT NULL,
    used_at INTEGER NOT NULL,
    PRIMARY KEY (app_id, digest)
) STRICT;
