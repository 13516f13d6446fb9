-- What the server does later for a campaign and a person, of its own accord: a firing that waits (`firing_id` is
-- the id that what comes of it has), or an occasion of the campaign's own. `event_seq` is the event behind it; one
-- that nobody sent has its negative instant.
CREATE TABLE occasions (
    id BLOB NOT NULL PRIMARY KEY,
    app_id BLOB NOT NULL,
    campaign_id BLOB NOT NULL,
    subject_id BLOB NOT NULL,
    alias_number INTEGER NOT NULL,
    key TEXT NOT NULL,
    due_at INTEGER NOT NULL,
    event_seq INTEGER NOT NULL,
    firing_id BLOB,
    node BLOB,
    UNIQUE (campaign_id, subject_id, key)
) STRICT;
-- What can be claimed, and what is.
CREATE INDEX occasions_by_due_time ON occasions (due_at) WHERE node IS NULL;
CREATE INDEX occasions_of_node ON occasions (node) WHERE node IS NOT NULL;
CREATE INDEX occasions_of_subject ON occasions (subject_id);
CREATE INDEX occasions_of_campaign ON occasions (campaign_id, due_at);

-- Campaigns that the calendar begins, by their `plan`. `next_at` is when the next run is to begin, `last_at` the occasion of the
-- newest one: a run begins once. `look_at` is when to see how far that one is, while it goes on.
CREATE TABLE campaign_runs (
    campaign_id BLOB NOT NULL PRIMARY KEY,
    app_id BLOB NOT NULL,
    kind TEXT NOT NULL,
    plan TEXT,
    next_at INTEGER,
    next_occasion INTEGER,
    last_at INTEGER,
    job_id BLOB,
    look_at INTEGER
) STRICT;
CREATE INDEX campaign_runs_by_time ON campaign_runs (next_at) WHERE next_at IS NOT NULL;
CREATE INDEX campaign_runs_to_look_at ON campaign_runs (look_at) WHERE look_at IS NOT NULL;
CREATE INDEX campaign_runs_of_app ON campaign_runs (app_id, campaign_id);
