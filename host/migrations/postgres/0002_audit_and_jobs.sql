-- What people and the server changed. Rows are only ever added; `resource` and `detail` name nobody's
-- personal data.
CREATE TABLE audit_log (
    id UUID NOT NULL PRIMARY KEY,
    app_id UUID NOT NULL,
    at BIGINT NOT NULL,
    actor TEXT NOT NULL,
    action TEXT NOT NULL,
    resource TEXT NOT NULL,
    detail TEXT NOT NULL
);
CREATE INDEX audit_of_app ON audit_log (app_id, id);

-- Long work. `progress` is the job's own note of how far it is, `node` the process that has it in hand.
CREATE TABLE jobs (
    id UUID NOT NULL PRIMARY KEY,
    app_id UUID NOT NULL,
    kind TEXT NOT NULL,
    state TEXT NOT NULL,
    input TEXT NOT NULL,
    progress TEXT NOT NULL,
    done BIGINT NOT NULL,
    total BIGINT,
    result TEXT,
    error TEXT,
    requested_by TEXT NOT NULL,
    node UUID,
    failures BIGINT NOT NULL,
    run_at BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    completed_at BIGINT
);
CREATE INDEX jobs_to_run ON jobs (run_at) WHERE completed_at IS NULL;
CREATE INDEX jobs_of_app ON jobs (app_id, id);
