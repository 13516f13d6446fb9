-- `version` of the API's app and settings resources; `apps.version` grows with every change of the snapshot.
ALTER TABLE apps ADD COLUMN revision BIGINT NOT NULL DEFAULT 1;
ALTER TABLE apps ADD COLUMN settings_revision BIGINT NOT NULL DEFAULT 1;

-- At most a minute behind.
ALTER TABLE keys ADD COLUMN last_used_at BIGINT;

-- Public keys of an app's backend, which signs identity tokens. `spki` is the key's SubjectPublicKeyInfo.
CREATE TABLE identity_keys (
    app_id UUID NOT NULL,
    kid TEXT NOT NULL,
    spki BYTEA NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (app_id, kid)
);
