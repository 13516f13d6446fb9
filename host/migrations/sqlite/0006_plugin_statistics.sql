-- Calls of plugins, added up by minute. `owner_id` is whose plugin it is (the nil UUID: the server's), `app_id`
-- in which app it was called. `since` is when the version came into the role that it was called in: it tells
-- the calls of a version from those of the same version in an earlier trial. `bucket` is a step of a histogram
-- of times, `outcome` what became of the calls.
CREATE TABLE plugin_calls (
    owner_id BLOB NOT NULL,
    name TEXT NOT NULL,
    app_id BLOB NOT NULL,
    minute INTEGER NOT NULL,
    version TEXT NOT NULL,
    since INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    bucket INTEGER NOT NULL,
    calls INTEGER NOT NULL,
    items INTEGER NOT NULL,
    max_micros INTEGER NOT NULL,
    memory_bytes INTEGER NOT NULL,
    PRIMARY KEY (owner_id, name, app_id, minute, version, since, outcome, bucket)
) STRICT, WITHOUT ROWID;
CREATE INDEX plugin_calls_by_minute ON plugin_calls (minute);
CREATE INDEX plugin_calls_of_term ON plugin_calls (owner_id, name, version, since);

-- What shadow candidates would have decided otherwise, added up since their trials began.
CREATE TABLE plugin_comparisons (
    owner_id BLOB NOT NULL,
    name TEXT NOT NULL,
    app_id BLOB NOT NULL,
    version TEXT NOT NULL,
    since INTEGER NOT NULL,
    calls INTEGER NOT NULL,
    same INTEGER NOT NULL,
    added INTEGER NOT NULL,
    removed INTEGER NOT NULL,
    changed INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    skipped INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (owner_id, name, app_id, version, since)
) STRICT, WITHOUT ROWID;

-- A few of the differences. They go with the subject.
CREATE TABLE plugin_differences (
    id BLOB NOT NULL PRIMARY KEY,
    owner_id BLOB NOT NULL,
    name TEXT NOT NULL,
    app_id BLOB NOT NULL,
    version TEXT NOT NULL,
    since INTEGER NOT NULL,
    subject_id BLOB NOT NULL,
    event_id BLOB NOT NULL,
    campaign_id BLOB,
    difference TEXT NOT NULL,
    at INTEGER NOT NULL
) STRICT;
CREATE INDEX plugin_differences_of_term ON plugin_differences (owner_id, name, app_id, version, since);
CREATE INDEX plugin_differences_of_subject ON plugin_differences (app_id, subject_id);

-- What plugins log. `call_id` leads to the subjects whose events the call was about.
CREATE TABLE plugin_log (
    id BLOB NOT NULL PRIMARY KEY,
    owner_id BLOB NOT NULL,
    name TEXT NOT NULL,
    app_id BLOB NOT NULL,
    version TEXT NOT NULL,
    at INTEGER NOT NULL,
    level INTEGER NOT NULL,
    kind TEXT NOT NULL,
    message TEXT NOT NULL,
    call_id BLOB NOT NULL
) STRICT;
CREATE INDEX plugin_log_of_plugin ON plugin_log (owner_id, name, app_id, id);
CREATE INDEX plugin_log_of_call ON plugin_log (call_id);
CREATE INDEX plugin_log_by_time ON plugin_log (at);

CREATE TABLE plugin_log_subjects (
    app_id BLOB NOT NULL,
    subject_id BLOB NOT NULL,
    call_id BLOB NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (app_id, subject_id, call_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX plugin_log_subjects_by_time ON plugin_log_subjects (at);
