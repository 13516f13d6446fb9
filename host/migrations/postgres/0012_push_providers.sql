-- What apps send push messages with. The newest of a platform and environment is used. The id is a UUID as text,
-- which is what the sealed key is bound to.
CREATE TABLE push_credentials (
    id TEXT NOT NULL PRIMARY KEY,
    app_id UUID NOT NULL,
    platform TEXT NOT NULL,
    environment TEXT NOT NULL,
    identity TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    sealed TEXT NOT NULL,
    status TEXT NOT NULL,
    status_reason TEXT,
    created_at BIGINT NOT NULL
);
CREATE INDEX push_credentials_of_app ON push_credentials (app_id, id);

-- Where people's devices are reached: one row a device of an app, and a token in one row only. `registration` is
-- another after each registration; the sealed token is bound to it. A device whose permission was refused may
-- have no token.
CREATE TABLE push_tokens (
    app_id UUID NOT NULL,
    device_id TEXT NOT NULL,
    subject_id UUID NOT NULL,
    registration TEXT NOT NULL UNIQUE,
    provider TEXT NOT NULL,
    environment TEXT NOT NULL,
    token_hash TEXT,
    token_suffix TEXT NOT NULL,
    sealed TEXT,
    status TEXT NOT NULL,
    registered_at BIGINT NOT NULL,
    PRIMARY KEY (app_id, device_id)
);
CREATE UNIQUE INDEX push_token_hashes ON push_tokens (app_id, token_hash);
CREATE INDEX push_tokens_of_subject ON push_tokens (subject_id, registered_at);
