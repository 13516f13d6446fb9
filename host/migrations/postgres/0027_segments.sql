-- Segments: conditions with a name. `based_version` is the version whose members are known; until then who meets the
-- conditions is found out without telling anybody. `newest_subject` is who was the newest person when the conditions became
-- what they are: whoever is newer came later.
CREATE TABLE segments (
    id UUID NOT NULL PRIMARY KEY,
    app_id UUID NOT NULL,
    name TEXT NOT NULL,
    description TEXT,
    audience TEXT NOT NULL,
    version BIGINT NOT NULL,
    based_version BIGINT NOT NULL,
    audience_version BIGINT NOT NULL,
    newest_subject UUID NOT NULL,
    size BIGINT,
    size_at BIGINT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    UNIQUE (app_id, name)
);
CREATE INDEX segments_of_app ON segments (app_id, id);

-- What names a segment: a survey, a campaign, another segment.
CREATE TABLE segment_uses (
    segment_id UUID NOT NULL,
    user_id UUID NOT NULL,
    app_id UUID NOT NULL,
    kind TEXT NOT NULL,
    PRIMARY KEY (segment_id, user_id)
);
CREATE INDEX segment_uses_of_user ON segment_uses (app_id, user_id);

-- Who was in a segment when that was last looked at.
CREATE TABLE segment_members (
    segment_id UUID NOT NULL,
    subject_id UUID NOT NULL,
    app_id UUID NOT NULL,
    PRIMARY KEY (segment_id, subject_id)
);
CREATE INDEX segment_members_of_subject ON segment_members (subject_id);

-- The size of a segment, once a day.
CREATE TABLE segment_sizes (
    segment_id UUID NOT NULL,
    day BIGINT NOT NULL,
    app_id UUID NOT NULL,
    at BIGINT NOT NULL,
    size BIGINT NOT NULL,
    PRIMARY KEY (segment_id, day)
);

-- Whose segments may have changed by something that they did or that was done to them.
CREATE TABLE segment_checks (
    subject_id UUID NOT NULL PRIMARY KEY,
    app_id UUID NOT NULL
);

-- When all people of an app are next looked at, for changes that time alone makes.
CREATE TABLE segment_sweeps (
    app_id UUID NOT NULL PRIMARY KEY,
    next_at BIGINT NOT NULL,
    job_id UUID
);
CREATE INDEX segment_sweeps_by_time ON segment_sweeps (next_at);
