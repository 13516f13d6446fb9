-- What people and the server changed. Rows are only ever added; `resource` and `detail` name nobody's
-- personal data.
CREATE TABLE audit_log (
    id BLOB NOT NULL PRIMARY KEY,
    app_id BLOB NOT NULL,
    at INTEGER NOT NULL,
    actor TEXT NOT NULL,
    action TEXT NOT NULL,
    resource TEXT NOT NULL,
    detail TEXT NOT NULL
) STRICT;
CREATE INDEX audit_of_app ON audit_log (app_id, id);

-- Long work. `progress` is the job's own note of how far it is, `node` the process that has it in hand.
CREATE TABLE jobs (
    id BLOB NOT NULL PRIMARY KEY,
    app_id BLOB NOT NULL,
    kind TEXT NOT NULL,
    state TEXT NOT NULL,
    input TEXT NOT NULL,
    progress TEXT NOT NULL,
    done INTEGER NOT NULL,
    total INTEGER,
    result TEXT,
    error TEXT,
    requested_by TEXT NOT NULL,
    node BLOB,
    failures INTEGER NOT NULL,
    run_at INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    completed_at INTEGER
) STRICT;
CREATE INDEX jobs_to_run ON jobs (run_at) WHERE completed_at IS NULL;
CREATE INDEX jobs_of_app ON jobs (app_id, id);
