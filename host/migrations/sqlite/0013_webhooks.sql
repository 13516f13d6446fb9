-- Endpoints that are told of what becomes of push deliveries (specification 2.8). What an app's snapshot has of
-- them is `event_types`, `active` and whether `disabled_at` is there; the rest of the health moves by itself and
-- changes no version. `event_types` is a list in JSON.
CREATE TABLE webhooks (
    id BLOB NOT NULL PRIMARY KEY,
    app_id BLOB NOT NULL,
    url TEXT NOT NULL,
    event_types TEXT NOT NULL,
    active INTEGER NOT NULL,
    description TEXT NOT NULL,
    version INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    consecutive_failures INTEGER NOT NULL DEFAULT 0,
    failing_since INTEGER,
    last_success_at INTEGER,
    last_failure_at INTEGER,
    last_status_code INTEGER,
    last_error TEXT,
    disabled_at INTEGER
) STRICT;
CREATE INDEX webhooks_of_app ON webhooks (app_id, id);

-- What endpoints' requests are signed with, sealed under the master key. The one that does not expire is the
-- newest; the one before signs beside it until it expires. `name` is what the value is bound to.
CREATE TABLE webhook_secrets (
    name TEXT NOT NULL PRIMARY KEY,
    app_id BLOB NOT NULL,
    webhook_id BLOB NOT NULL,
    sealed TEXT NOT NULL,
    expires_at INTEGER
) STRICT;
CREATE INDEX webhook_secrets_of_app ON webhook_secrets (app_id, webhook_id);
CREATE INDEX webhook_secrets_of_webhook ON webhook_secrets (webhook_id);

-- What endpoints are to be told, and have been: each transition of a delivery once. `body` is what is sent, the
-- same bytes each time. `due_at` is there as long as the message is to be sent; `node` is the process that has it
-- in hand. `position` orders the messages of a delivery. `state` is pending, succeeded, failed, or held: not sent,
-- since the endpoint was disabled.
CREATE TABLE webhook_messages (
    id BLOB NOT NULL PRIMARY KEY,
    app_id BLOB NOT NULL,
    webhook_id BLOB NOT NULL,
    subject_id BLOB NOT NULL,
    delivery_id BLOB NOT NULL,
    position BLOB NOT NULL,
    event_type TEXT NOT NULL,
    body TEXT NOT NULL,
    state TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    due_at INTEGER,
    node BLOB
) STRICT;
-- What is free to be sent, by endpoint: no endpoint's messages stand in the way of another's.
CREATE INDEX webhook_messages_due ON webhook_messages (webhook_id, due_at) WHERE due_at IS NOT NULL AND node IS NULL;
CREATE INDEX webhook_messages_open ON webhook_messages (webhook_id, delivery_id) WHERE due_at IS NOT NULL;
CREATE INDEX webhook_messages_in_hand ON webhook_messages (node) WHERE node IS NOT NULL;
CREATE INDEX webhook_messages_of_webhook ON webhook_messages (webhook_id, app_id, created_at);
CREATE INDEX webhook_messages_of_subject ON webhook_messages (subject_id);
CREATE INDEX webhook_messages_of_app ON webhook_messages (app_id, created_at);

-- Every time that a message was sent. They go with their message.
CREATE TABLE webhook_attempts (
    id BLOB NOT NULL PRIMARY KEY,
    app_id BLOB NOT NULL,
    webhook_id BLOB NOT NULL,
    message_id BLOB NOT NULL REFERENCES webhook_messages (id) ON DELETE CASCADE,
    event_type TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    at INTEGER NOT NULL,
    status_code INTEGER,
    latency_ms INTEGER NOT NULL,
    error TEXT,
    next_attempt_at INTEGER
) STRICT;
CREATE INDEX webhook_attempts_of_webhook ON webhook_attempts (webhook_id, id);
CREATE INDEX webhook_attempts_of_message ON webhook_attempts (message_id);
