-- What trigger plugins decided and from what, so that it can be decided again: one row a call. `record` is
-- the host's own encoding.
CREATE TABLE decisions (
    app_id UUID NOT NULL,
    id UUID NOT NULL,
    record BYTEA NOT NULL,
    PRIMARY KEY (app_id, id)
);

-- Whose data a decision holds. A decision goes with any of them.
CREATE TABLE decision_subjects (
    app_id UUID NOT NULL,
    decision_id UUID NOT NULL,
    subject_id UUID NOT NULL,
    PRIMARY KEY (app_id, decision_id, subject_id)
);
CREATE INDEX decisions_of_subject ON decision_subjects (subject_id, decision_id);

-- Configurations that decisions were made under, once each. `used_at` is when one was last noted to be used.
CREATE TABLE decision_configs (
    app_id UUID NOT NULL,
    digest BYTEA NOT NULL,
    config TEXT NOT NULL,
    properties TEXT NOT NULL,
    used_at BIGINT NOT NULL,
    PRIMARY KEY (app_id, digest)
);
