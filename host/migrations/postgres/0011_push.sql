CREATE TABLE push_campaigns (
    id UUID NOT NULL PRIMARY KEY,
    app_id UUID NOT NULL,
    version BIGINT NOT NULL,
    status TEXT NOT NULL,
    body TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    activated_at BIGINT,
    ends_at BIGINT
);
CREATE INDEX push_campaigns_of_app ON push_campaigns (app_id, id);
CREATE INDEX push_campaigns_by_end ON push_campaigns (ends_at) WHERE ends_at IS NOT NULL;

-- What a campaign said at a version: a delivery is rendered as of the version that fired.
CREATE TABLE push_campaign_versions (
    campaign_id UUID NOT NULL,
    version BIGINT NOT NULL,
    app_id UUID NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (campaign_id, version)
);

-- A message to a person. `due_at` is when the sender has something to do about it, `node` is the process that has
-- it in hand. `content` is what was resolved, so that retries send the same; `devices` is what became of it at
-- each device. The last eight columns are when it came into its states.
CREATE TABLE deliveries (
    id UUID NOT NULL PRIMARY KEY,
    app_id UUID NOT NULL,
    campaign_id UUID NOT NULL,
    campaign_version BIGINT NOT NULL,
    variant_id UUID NOT NULL,
    subject_id UUID NOT NULL,
    alias_number BIGINT,
    event_seq BIGINT,
    event_id UUID,
    data TEXT,
    idempotency_key TEXT,
    test BOOLEAN NOT NULL,
    recipients BIGINT NOT NULL,
    status TEXT NOT NULL,
    reason TEXT,
    content TEXT,
    devices TEXT,
    platform TEXT,
    attempts BIGINT NOT NULL,
    lane BIGINT NOT NULL,
    due_at BIGINT,
    node UUID,
    created_at BIGINT NOT NULL,
    sent_at BIGINT,
    delivered_at BIGINT,
    displayed_at BIGINT,
    opened_at BIGINT,
    clicked_at BIGINT,
    dismissed_at BIGINT,
    ended_at BIGINT
);
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
    app_id UUID NOT NULL,
    campaign_id UUID NOT NULL,
    hour BIGINT NOT NULL,
    state TEXT NOT NULL,
    count BIGINT NOT NULL,
    PRIMARY KEY (app_id, campaign_id, hour, state)
);
CREATE INDEX delivery_counts_by_hour ON delivery_counts (app_id, hour);
