CREATE TABLE push_campaigns (
    id BLOB NOT NULL PRIMARY KEY,
    app_id BLOB NOT NULL,
    version INTEGER NOT NULL,
    status TEXT NOT NULL,
    body TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    activated_at INTEGER,
    ends_at INTEGER
) STRICT;
CREATE INDEX push_campaigns_of_app ON push_campaigns (app_id, id);
CREATE INDEX push_campaigns_by_end ON push_campaigns (ends_at) WHERE ends_at IS NOT NULL;

-- What a campaign said at a version: a delivery is rendered as of the version that fired.
CREATE TABLE push_campaign_versions (
    campaign_id BLOB NOT NULL,
    version INTEGER NOT NULL,
    app_id BLOB NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (campaign_id, version)
) STRICT, WITHOUT ROWID;

-- A message to a person. `due_at` is when the sender has something to do about it, `node` is the process that has
-- it in hand. `content` is what was resolved, so that retries send the same; `devices` is what became of it at
-- each device. The last eight columns are when it came into its states.
CREATE TABLE deliveries (
    id BLOB NOT NULL PRIMARY KEY,
    app_id BLOB NOT NULL,
    campaign_id BLOB NOT NULL,
    campaign_version INTEGER NOT NULL,
    variant_id BLOB NOT NULL,
    subject_id BLOB NOT NULL,
    alias_number INTEGER,
    event_seq INTEGER,
    event_id BLOB,
    data TEXT,
    idempotency_key TEXT,
    test INTEGER NOT NULL,
    recipients INTEGER NOT NULL,
    status TEXT NOT NULL,
    reason TEXT,
    content TEXT,
    devices TEXT,
    platform TEXT,
    attempts INTEGER NOT NULL,
    lane INTEGER NOT NULL,
    due_at INTEGER,
    node BLOB,
    created_at INTEGER NOT NULL,
    sent_at INTEGER,
    delivered_at INTEGER,
    displayed_at INTEGER,
    opened_at INTEGER,
    clicked_at INTEGER,
    dismissed_at INTEGER,
    ended_at INTEGER
) STRICT;
CREATE INDEX deliveries_of_app ON deliveries (app_id, created_at, id);
CREATE INDEX deliveries_of_campaign ON deliveries (campaign_id, created_at, id);
CREATE INDEX deliveries_of_subject ON deliveries (subject_id, created_at, id);
CREATE INDEX deliveries_by_status ON deliveries (app_id, status, created_at, id);
CREATE UNIQUE INDEX delivery_of_key ON deliveries (app_id, idempotency_key) WHERE idempotency_key IS NOT NULL;
-- Where an app has none that is due, one look finds that out.
CREATE INDEX deliveries_due ON deliveries (app_id, lane, due_at) WHERE due_at IS NOT NULL AND node IS NULL;
CREATE INDEX deliveries_in_hand ON deliveries (node) WHERE node IS NOT NULL;

-- How many deliveries came into a state, by the hour. Tests do not count.
CREATE TABLE delivery_counts (
    app_id BLOB NOT NULL,
    campaign_id BLOB NOT NULL,
    hour INTEGER NOT NULL,
    state TEXT NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (app_id, campaign_id, hour, state)
) STRICT, WITHOUT ROWID;
CREATE INDEX delivery_counts_by_hour ON delivery_counts (app_id, hour);
