-- `version` of the API's app and settings resources; `apps.version` grows with every change of the snapshot.
ALTER TABLE apps ADD COLUMN revision INTEGER NOT NULL DEFAULT 1;
ALTER TABLE apps ADD COLUMN settings_revision INTEGER NOT NULL DEFAULT 1;

-- At most a minute behind.
ALTER TABLE keys ADD COLUMN last_used_at INTEGER;

-- Public keys of an app's backend, which signs identity tokens. `spki` is the key's SubjectPublicKeyInfo.
CREATE TABLE identity_keys (
    app_id BLOB NOT NULL,
    kid TEXT NOT NULL,
    spki BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (app_id, kid)
) STRICT, WITHOUT ROWID;
