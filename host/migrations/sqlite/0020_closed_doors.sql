-- Where people's devices are reached: one row a device of a person, and a token in one row only. What an SDK calls a device is
-- no secret and no proof: who names somebody else's has a row of their own. `registration` is another after each
-- registration; the sealed token is bound to it. A device whose permission was refused may have no token.
CREATE TABLE push_registrations (
    app_id BLOB NOT NULL,
    subject_id BLOB NOT NULL,
    device_id TEXT NOT NULL,
    registration TEXT NOT NULL UNIQUE,
    provider TEXT NOT NULL,
    environment TEXT NOT NULL,
    token_hash TEXT,
    token_suffix TEXT NOT NULL,
    sealed TEXT,
    status TEXT NOT NULL,
    registered_at INTEGER NOT NULL,
    PRIMARY KEY (app_id, subject_id, device_id)
) STRICT;
INSERT INTO push_registrations (app_id, subject_id, device_id, registration, provider, environment, token_hash, token_suffix,
                                sealed, status, registered_at)
SELECT app_id, subject_id, device_id, registration, provider, environment, token_hash, token_suffix, sealed, status,
       registered_at
FROM push_tokens;
DROP TABLE push_tokens;
ALTER TABLE push_registrations RENAME TO push_tokens;
CREATE UNIQUE INDEX push_token_hashes ON push_tokens (app_id, token_hash);
CREATE INDEX push_tokens_of_subject ON push_tokens (subject_id, registered_at);

-- People whose deletion is queued, whom nothing that reads shows.
CREATE INDEX subjects_hidden ON subjects (app_id, id) WHERE suppressed;
