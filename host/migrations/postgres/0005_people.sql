-- The list of people, newest first.
CREATE INDEX subjects_of_app ON subjects (app_id, id);

-- What a search by prefix compares: the value in lower case; none for names that the server gave.
ALTER TABLE aliases ADD COLUMN folded TEXT COLLATE "C";
UPDATE aliases SET folded = lower(value);
CREATE INDEX aliases_by_folded ON aliases (app_id, folded, number);

-- What a search for a part of a property's value reads: values that are texts, in lower case.
CREATE TABLE property_texts (
    app_id UUID NOT NULL,
    subject_id UUID NOT NULL,
    key TEXT NOT NULL,
    folded TEXT NOT NULL,
    PRIMARY KEY (app_id, subject_id, key)
);

-- Updates of properties that were taken, so that none is taken twice. `digest` is that of whom and what it names.
CREATE TABLE property_mutations (
    app_id UUID NOT NULL,
    mutation_id UUID NOT NULL,
    subject_id UUID NOT NULL,
    digest BYTEA NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (app_id, mutation_id)
);
CREATE INDEX property_mutations_of_subject ON property_mutations (subject_id);
CREATE INDEX property_mutations_by_time ON property_mutations (app_id, created_at);

-- Devices that a person's events came from.
CREATE TABLE devices (
    subject_id UUID NOT NULL,
    device_id TEXT NOT NULL,
    app_id UUID NOT NULL,
    platform TEXT,
    app_version TEXT,
    sdk_version TEXT,
    locale TEXT,
    first_seen_at BIGINT NOT NULL,
    last_seen_at BIGINT NOT NULL,
    PRIMARY KEY (subject_id, device_id)
);

-- Which device a request came from; its events' rows do not say.
ALTER TABLE pending ADD COLUMN device_id TEXT;
ALTER TABLE pending ADD COLUMN sdk_version TEXT;

-- Subjects that became part of another, which is found by their ids too.
CREATE TABLE merged_subjects (
    id UUID NOT NULL PRIMARY KEY,
    app_id UUID NOT NULL,
    subject_id UUID NOT NULL,
    merged_at BIGINT NOT NULL
);
CREATE INDEX merged_subjects_of_subject ON merged_subjects (subject_id);
