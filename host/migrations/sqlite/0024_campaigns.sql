-- Campaigns of all kinds, with the kind in each row: `survey` or `push`.
CREATE TABLE campaigns (
    id BLOB NOT NULL PRIMARY KEY,
    app_id BLOB NOT NULL,
    kind TEXT NOT NULL,
    version INTEGER NOT NULL,
    status TEXT NOT NULL,
    body TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    activated_at INTEGER,
    ends_at INTEGER
) STRICT;
INSERT INTO campaigns (id, app_id, kind, version, status, body, created_at, updated_at, activated_at, ends_at)
SELECT id, app_id, 'survey', version, status, body, created_at, updated_at, activated_at, ends_at FROM surveys;
INSERT INTO campaigns (id, app_id, kind, version, status, body, created_at, updated_at, activated_at, ends_at)
SELECT id, app_id, 'push', version, status, body, created_at, updated_at, activated_at, ends_at FROM push_campaigns;
CREATE INDEX campaigns_of_app ON campaigns (app_id, kind, id);
CREATE INDEX campaigns_by_end ON campaigns (ends_at) WHERE ends_at IS NOT NULL;

-- What a campaign said at a version: an instruction is shown, and a delivery rendered, as of the version that fired.
CREATE TABLE campaign_versions (
    campaign_id BLOB NOT NULL,
    version INTEGER NOT NULL,
    app_id BLOB NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (campaign_id, version)
) STRICT, WITHOUT ROWID;
INSERT INTO campaign_versions (campaign_id, version, app_id, body)
SELECT survey_id, version, app_id, body FROM survey_versions;
INSERT INTO campaign_versions (campaign_id, version, app_id, body)
SELECT campaign_id, version, app_id, body FROM push_campaign_versions;

DROP TABLE surveys;
DROP TABLE survey_versions;
DROP TABLE push_campaigns;
DROP TABLE push_campaign_versions;
