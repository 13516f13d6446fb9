-- Endpoints that are told of what becomes of push deliveries (specification 2.8). What an app's snapshot has of
-- them is `event_types`, `active` and whether `disabled_at` is there; the rest of the health moves by itself and
-- changes no version. `event_types` is a list in JSON.
CREATE TABLE webhooks (
    id UUID NOT NULL PRIMARY KEY,
    app_id UUID NOT NULL,
    url TEXT NOT NULL,
    event_types TEXT NOT NULL,
    active BOOLEAN NOT NULL,
    description TEXT NOT NULL,
    version BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    consecutive_failures BIGINT NOT NULL DEFAULT 0,
    failing_since BIGINT,
    last_success_at BIGINT,
    last_failure_at BIGINT,
    last_status_code BIGINT,
    last_error TEXT,
    disabled_at BIGINT
);
CREATE INDEX webhooks_of_app ON webhooks (app_id, id);

-- What endpoints' requests are signed with, sealed under the master key. The one that does not expire is the
-- newest; the one before signs beside it until it expires. `name` is what the value is bound to.
CREATE TABLE webhook_secrets (
    name TEXT NOT NULL PRIMARY KEY,
    app_id UUID NOT NULL,
    webhook_id UUID NOT NULL,
    sealed TEXT NOT NULL,
    expires_at BIGINT
);
CREATE INDEX webhook_secrets_of_app ON webhook_secrets (app_id, webhook_id);
CREATE INDEX webhook_secrets_of_webhook ON webhook_secrets (webhook_id);

-- What endpoints are to be told, and have been: each transition of a delivery once. `body` is what is sent, the
-- same bytes each time. `due_at` is there as long as the message is to be sent; `node` is the process that has it
-- in hand. `position` orders the messages of a delivery. `state` is pending, succeeded, failed, or held: not sent,
-- since the endpoint was disabled.
CREATE TABLE webhook_messages (
    id UUID NOT NULL PRIMARY KEY,
    app_id UUID NOT NULL,
    webhook_id UUID NOT NULL,
    subject_id UUID NOT NULL,
    delivery_id UUID NOT NULL,
    position UUID NOT NULL,
    event_type TEXT NOT NULL,
    body TEXT NOT NULL,
    state TEXT NOT NULL,
    attempts BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    due_at BIGINT,
    node UUID
);
-- What is free to be sent, by endpoint: no endpoint's messages stand in the way of another's.
CREATE INDEX webhook_messages_due ON webhook_messages (webhook_id, due_at) WHERE due_at IS NOT NULL AND node IS NULL;
CREATE INDEX webhook_messages_open ON webhook_messages (webhook_id, delivery_id) WHERE due_at IS NOT NULL;
CREATE INDEX webhook_messages_in_hand ON webhook_messages (node) WHERE node IS NOT NULL;
CREATE INDEX webhook_messages_of_webhook ON webhook_messages (webhook_id, app_id, created_at);
CREATE INDEX webhook_messages_of_subject ON webhook_messages (subject_id);
CREATE INDEX webhook_messages_of_app ON webhook_messages (app_id, created_at);

-- Every time that a message was sent. They go with their message.
CREATE TABLE webhook_attempts (
    id UUID NOT NULL PRIMARY KEY,
    app_id UUID NOT NULL,
    webhook_id UUID NOT NULL,
    message_id UUID NOT NULL REFERENCES webhook_messages (id) ON DELETE CASCADE,
    event_type TEXT NOT NULL,
    attempt BIGINT NOT NULL,
    at BIGINT NOT NULL,
    status_code BIGINT,
    latency_ms BIGINT NOT NULL,
    error TEXT,
    next_attempt_at BIGINT
);
CREATE INDEX webhook_attempts_of_webhook ON webhook_attempts (webhook_id, id);
CREATE INDEX webhook_attempts_of_message ON webhook_attempts (message_id);
