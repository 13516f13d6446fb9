-- Processes that share the database. A process whose heartbeat stops has lost its claims.
CREATE TABLE nodes (
    id BLOB NOT NULL PRIMARY KEY,
    started_at INTEGER NOT NULL,
    heartbeat_at INTEGER NOT NULL
) STRICT;

-- `version` grows with every change of what the app's in-memory snapshot is made of.
CREATE TABLE apps (
    id BLOB NOT NULL PRIMARY KEY,
    workspace_id BLOB NOT NULL,
    name TEXT NOT NULL,
    settings TEXT NOT NULL,
    version INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;
CREATE INDEX apps_of_workspace ON apps (workspace_id, id);

CREATE TABLE keys (
    id BLOB NOT NULL PRIMARY KEY,
    app_id BLOB NOT NULL,
    workspace_id BLOB NOT NULL,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    hash BLOB NOT NULL UNIQUE,
    scopes TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER
) STRICT;
CREATE INDEX keys_of_app ON keys (app_id, id);

-- `version` guards the pipeline's read-decide-write, `last_seq` is the last event it processed.
CREATE TABLE subjects (
    id BLOB NOT NULL PRIMARY KEY,
    app_id BLOB NOT NULL,
    external_id TEXT,
    analytics_consent INTEGER,
    messaging_consent INTEGER,
    consent_at INTEGER,
    suppressed INTEGER NOT NULL,
    first_seen_at INTEGER NOT NULL,
    last_seen_at INTEGER NOT NULL,
    event_count INTEGER NOT NULL,
    country TEXT,
    platform TEXT,
    app_version TEXT,
    locale TEXT,
    timezone TEXT,
    session_number INTEGER NOT NULL,
    session_active_at INTEGER,
    instruction_count INTEGER NOT NULL,
    last_seq INTEGER NOT NULL,
    version INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX subject_of_external_id ON subjects (app_id, external_id);

-- A name that events come under. Its number owns them, so that merging subjects rewrites no event.
CREATE TABLE aliases (
    number INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    app_id BLOB NOT NULL,
    kind TEXT NOT NULL,
    value TEXT NOT NULL,
    subject_id BLOB NOT NULL,
    token_epoch INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    UNIQUE (app_id, kind, value)
) STRICT;
CREATE INDEX aliases_of_subject ON aliases (subject_id, number);

CREATE TABLE subject_properties (
    subject_id BLOB NOT NULL,
    key TEXT NOT NULL,
    app_id BLOB NOT NULL,
    value TEXT NOT NULL,
    source TEXT NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (subject_id, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE client_sessions (
    app_id BLOB NOT NULL,
    client_id BLOB NOT NULL,
    subject_id BLOB NOT NULL,
    started_at INTEGER NOT NULL,
    ended_at INTEGER,
    PRIMARY KEY (app_id, client_id)
) STRICT, WITHOUT ROWID;

-- Committed requests that the pipeline has not processed. Request N owns the events
-- from seq N*512 on. `node` is the process that has it in hand.
CREATE TABLE pending (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    app_id BLOB NOT NULL,
    alias_number INTEGER NOT NULL,
    ordinal INTEGER NOT NULL,
    node BLOB
) STRICT;
CREATE INDEX pending_of_alias ON pending (alias_number, id);

-- Every index begins with the owner: the events of a request touch a page or two of each.
CREATE TABLE events (
    seq INTEGER NOT NULL PRIMARY KEY,
    app_id BLOB NOT NULL,
    alias_number INTEGER NOT NULL,
    event_id BLOB NOT NULL,
    name TEXT NOT NULL,
    timestamp INTEGER NOT NULL,
    client_timestamp INTEGER,
    received_at INTEGER NOT NULL,
    properties TEXT NOT NULL,
    platform TEXT,
    app_version TEXT,
    locale TEXT,
    timezone TEXT,
    source TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX event_of_alias ON events (alias_number, event_id);
CREATE INDEX events_by_time ON events (alias_number, timestamp, event_id);
CREATE INDEX events_by_name ON events (alias_number, name, timestamp);

CREATE TABLE definitions (
    id BLOB NOT NULL PRIMARY KEY,
    app_id BLOB NOT NULL,
    name TEXT NOT NULL,
    version INTEGER NOT NULL,
    status TEXT NOT NULL,
    body TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    UNIQUE (app_id, name)
) STRICT;

CREATE TABLE dead_letters (
    id BLOB NOT NULL PRIMARY KEY,
    app_id BLOB NOT NULL,
    alias_number INTEGER NOT NULL,
    event_id BLOB NOT NULL,
    event_name TEXT NOT NULL,
    stage TEXT NOT NULL,
    reason TEXT NOT NULL,
    violations TEXT NOT NULL,
    plugin_name TEXT,
    plugin_version TEXT,
    campaign_id BLOB,
    event TEXT NOT NULL,
    timestamp INTEGER NOT NULL,
    received_at INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    state TEXT NOT NULL
) STRICT;
CREATE INDEX dead_letters_of_app ON dead_letters (app_id, id);

CREATE TABLE surveys (
    id BLOB NOT NULL PRIMARY KEY,
    app_id BLOB NOT NULL,
    version INTEGER NOT NULL,
    status TEXT NOT NULL,
    body TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    activated_at INTEGER
) STRICT;
CREATE INDEX surveys_of_app ON surveys (app_id, id);

-- What a survey said when an instruction to show it was issued.
CREATE TABLE survey_versions (
    survey_id BLOB NOT NULL,
    version INTEGER NOT NULL,
    app_id BLOB NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (survey_id, version)
) STRICT, WITHOUT ROWID;

-- `position` grows with each instruction of a subject.
CREATE TABLE instructions (
    id BLOB NOT NULL PRIMARY KEY,
    app_id BLOB NOT NULL,
    subject_id BLOB NOT NULL,
    position INTEGER NOT NULL,
    kind TEXT NOT NULL,
    campaign_id BLOB NOT NULL,
    campaign_version INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    trigger_event_id BLOB,
    trigger_name TEXT,
    created_at INTEGER NOT NULL,
    available_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    status TEXT NOT NULL,
    status_at INTEGER NOT NULL,
    plugin_name TEXT NOT NULL,
    plugin_version TEXT NOT NULL
) STRICT;
CREATE INDEX instructions_of_subject ON instructions (subject_id, position);
CREATE INDEX instructions_of_campaign ON instructions (campaign_id, id);

CREATE TABLE plugin_states (
    campaign_id BLOB NOT NULL,
    subject_id BLOB NOT NULL,
    app_id BLOB NOT NULL,
    state BLOB NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (campaign_id, subject_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX plugin_states_of_subject ON plugin_states (subject_id);

CREATE TABLE timers (
    id BLOB NOT NULL PRIMARY KEY,
    app_id BLOB NOT NULL,
    campaign_id BLOB NOT NULL,
    subject_id BLOB NOT NULL,
    key TEXT NOT NULL,
    due_at INTEGER NOT NULL,
    payload BLOB NOT NULL,
    event_seq INTEGER NOT NULL,
    node BLOB,
    UNIQUE (campaign_id, subject_id, key)
) STRICT;
CREATE INDEX timers_by_due_time ON timers (due_at);
CREATE INDEX timers_of_subject ON timers (subject_id);
