-- Calls of plugins, added up by minute. `owner_id` is whose plugin it is (the nil UUID: the server's), `app_id`
-- in which app it was called. `since` is when the version came into the role that it was called in: it tells
-- the calls of a version from those of the same version in an earlier trial. `bucket` is a step of a histogram
-- of times, `outcome` what became of the calls.
CREATE TABLE plugin_calls (
    owner_id UUID NOT NULL,
    name TEXT NOT NULL,
    app_id UUID NOT NULL,
    minute BIGINT NOT NULL,
    version TEXT NOT NULL,
    since BIGINT NOT NULL,
    outcome TEXT NOT NULL,
    bucket BIGINT NOT NULL,
    calls BIGINT NOT NULL,
    items BIGINT NOT NULL,
    max_micros BIGINT NOT NULL,
    memory_bytes BIGINT NOT NULL,
    PRIMARY KEY (owner_id, name, app_id, minute, version, since, outcome, bucket)
);
CREATE INDEX plugin_calls_by_minute ON plugin_calls (minute);
CREATE INDEX plugin_calls_of_term ON plugin_calls (owner_id, name, version, since);

-- What shadow candidates would have decided otherwise, added up since their trials began.
CREATE TABLE plugin_comparisons (
    owner_id UUID NOT NULL,
    name TEXT NOT NULL,
    app_id UUID NOT NULL,
    version TEXT NOT NULL,
    since BIGINT NOT NULL,
    calls BIGINT NOT NULL,
    same BIGINT NOT NULL,
    added BIGINT NOT NULL,
    removed BIGINT NOT NULL,
    changed BIGINT NOT NULL,
    failed BIGINT NOT NULL,
    skipped BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (owner_id, name, app_id, version, since)
);

-- A few of the differences. They go with the subject.
CREATE TABLE plugin_differences (
    id UUID NOT NULL PRIMARY KEY,
    owner_id UUID NOT NULL,
    name TEXT NOT NULL,
    app_id UUID NOT NULL,
    version TEXT NOT NULL,
    since BIGINT NOT NULL,
    subject_id UUID NOT NULL,
    event_id UUID NOT NULL,
    campaign_id UUID,
    difference TEXT NOT NULL,
    at BIGINT NOT NULL
);
CREATE INDEX plugin_differences_of_term ON plugin_differences (owner_id, name, app_id, version, since);
CREATE INDEX plugin_differences_of_subject ON plugin_differences (app_id, subject_id);

-- What plugins log. `call_id` leads to the subjects whose events the call was about.
CREATE TABLE plugin_log (
    id UUID NOT NULL PRIMARY KEY,
    owner_id UUID NOT NULL,
    name TEXT NOT NULL,
    app_id UUID NOT NULL,
    version TEXT NOT NULL,
    at BIGINT NOT NULL,
    level BIGINT NOT NULL,
    kind TEXT NOT NULL,
    message TEXT NOT NULL,
    call_id UUID NOT NULL
);
CREATE INDEX plugin_log_of_plugin ON plugin_log (owner_id, name, app_id, id);
CREATE INDEX plugin_log_of_call ON plugin_log (call_id);
CREATE INDEX plugin_log_by_time ON plugin_log (at);

CREATE TABLE plugin_log_subjects (
    app_id UUID NOT NULL,
    subject_id UUID NOT NULL,
    call_id UUID NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (app_id, subject_id, call_id)
);
CREATE INDEX plugin_log_subjects_by_time ON plugin_log_subjects (at);
