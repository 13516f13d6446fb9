-- Whom nothing may be stored of any longer: keyed hashes of the names that people had whose data was deleted.
-- `alias_number` is what owned their events; it leads to nobody once the alias is gone.
CREATE TABLE suppressions (
    app_id UUID NOT NULL,
    hash TEXT NOT NULL,
    job_id UUID NOT NULL,
    alias_number BIGINT,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (app_id, hash)
);
CREATE INDEX suppressions_of_job ON suppressions (job_id);

-- Keys and the like that the server made for itself, sealed under the master key.
CREATE TABLE server_secrets (
    name TEXT NOT NULL PRIMARY KEY,
    sealed TEXT NOT NULL
);

-- What is stored of a person is found by the person.
CREATE INDEX dead_letters_of_alias ON dead_letters (alias_number);
CREATE INDEX client_sessions_of_subject ON client_sessions (subject_id);

-- What a person asked to see. The id is that of the job that makes the archive; once the person is deleted,
-- nothing here says whose it was.
CREATE TABLE privacy_exports (
    id UUID NOT NULL PRIMARY KEY,
    app_id UUID NOT NULL,
    subject_id UUID,
    reference TEXT,
    size_bytes BIGINT,
    sha256 TEXT,
    expires_at BIGINT
);
CREATE INDEX privacy_exports_of_app ON privacy_exports (app_id, id);
CREATE INDEX privacy_exports_of_subject ON privacy_exports (subject_id);
CREATE INDEX privacy_exports_by_expiry ON privacy_exports (expires_at);

-- The archives, in pieces, so that any process can serve them and none holds one in memory.
CREATE TABLE privacy_export_chunks (
    export_id UUID NOT NULL,
    number BIGINT NOT NULL,
    app_id UUID NOT NULL,
    subject_id UUID NOT NULL,
    bytes BYTEA NOT NULL,
    PRIMARY KEY (export_id, number)
);
CREATE INDEX privacy_export_chunks_of_subject ON privacy_export_chunks (subject_id);
