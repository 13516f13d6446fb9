-- Components by their SHA-256. What several apps upload is stored once, so that there is no app here.
CREATE TABLE plugin_components (
    digest TEXT NOT NULL PRIMARY KEY,
    bytes BLOB NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;

-- Everywhere below, the nil UUID as `app_id` is the server itself, whose plugins all apps have. `revision`
-- guards the read-check-write of a change of what is active.
CREATE TABLE plugins (
    app_id BLOB NOT NULL,
    name TEXT NOT NULL,
    kind TEXT NOT NULL,
    active_version TEXT,
    activated_at INTEGER,
    previous_version TEXT,
    candidate_version TEXT,
    candidate_strategy TEXT,
    candidate_percent INTEGER,
    candidate_since INTEGER,
    revision INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (app_id, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE plugin_versions (
    app_id BLOB NOT NULL,
    name TEXT NOT NULL,
    version TEXT NOT NULL,
    digest TEXT NOT NULL,
    size_bytes INTEGER NOT NULL,
    description TEXT NOT NULL,
    config_schema TEXT NOT NULL,
    imports TEXT NOT NULL,
    checks TEXT NOT NULL,
    uploaded_by TEXT NOT NULL,
    uploaded_at INTEGER NOT NULL,
    PRIMARY KEY (app_id, name, version)
) STRICT;
CREATE INDEX plugin_versions_of_component ON plugin_versions (digest);

-- Which plugin decides where none is named; without a row, the server's, and then the built-in one.
CREATE TABLE plugin_slots (
    app_id BLOB NOT NULL,
    kind TEXT NOT NULL,
    plugin TEXT NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (app_id, kind)
) STRICT, WITHOUT ROWID;
