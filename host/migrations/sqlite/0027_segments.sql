-- Segments: conditions with a name. `based_version` is the version whose members are known; until then who meets the
-- conditions is found out without telling anybody. `newest_subject` is who was the newest person when the conditions became
-- what they are: whoever is newer came later.
CREATE TABLE segments (
    id BLOB NOT NULL PRIMARY KEY,
    app_id BLOB NOT NULL,
    name TEXT NOT NULL,
    description TEXT,
    audience TEXT NOT NULL,
    version INTEGER NOT NULL,
    based_version INTEGER NOT NULL,
    audience_version INTEGER NOT NULL,
    newest_subject BLOB NOT NULL,
    size INTEGER,
    size_at INTEGER,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    UNIQUE (app_id, name)
) STRICT;
CREATE INDEX segments_of_app ON segments (app_id, id);

-- What names a segment: a survey, a campaign, another segment.
CREATE TABLE segment_uses (
    segment_id BLOB NOT NULL,
    user_id BLOB NOT NULL,
    app_id BLOB NOT NULL,
    kind TEXT NOT NULL,
    PRIMARY KEY (segment_id, user_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX segment_uses_of_user ON segment_uses (app_id, user_id);

-- Who was in a segment when that was last looked at.
CREATE TABLE segment_members (
    segment_id BLOB NOT NULL,
    subject_id BLOB NOT NULL,
    app_id BLOB NOT NULL,
    PRIMARY KEY (segment_id, subject_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX segment_members_of_subject ON segment_members (subject_id);

-- The size of a segment, once a day.
CREATE TABLE segment_sizes (
    segment_id BLOB NOT NULL,
    day INTEGER NOT NULL,
    app_id BLOB NOT NULL,
    at INTEGER NOT NULL,
    size INTEGER NOT NULL,
    PRIMARY KEY (segment_id, day)
) STRICT, WITHOUT ROWID;

-- Whose segments may have changed by something that they did or that was done to them.
CREATE TABLE segment_checks (
    subject_id BLOB NOT NULL PRIMARY KEY,
    app_id BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- When all people of an app are next looked at, for changes that time alone makes.
CREATE TABLE segment_sweeps (
    app_id BLOB NOT NULL PRIMARY KEY,
    next_at INTEGER NOT NULL,
    job_id BLOB
) STRICT, WITHOUT ROWID;
CREATE INDEX segment_sweeps_by_time ON segment_sweeps (next_at);
