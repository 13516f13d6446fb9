-- The feed of an app's events, newest first by receipt: an index for each name, which the feed merges. Those of one
-- name come one behind the other, so that the events of many requests share the pages that they change. The expression
-- is the app's id, and keeps the index to those who ask by it: SQLite would go by the app, and sort all of its events,
-- where another index leads to a few of them.
CREATE INDEX events_of_app ON events (coalesce(app_id, app_id), name, received_at, seq);

-- Events that were refused, for an hour: what the feed shows beside those that were taken. `errors` is a list in JSON.
CREATE TABLE rejected_events (
    id BLOB NOT NULL PRIMARY KEY,
    app_id BLOB NOT NULL,
    alias_number INTEGER NOT NULL,
    event_id BLOB,
    name TEXT,
    timestamp INTEGER,
    received_at INTEGER NOT NULL,
    properties TEXT,
    platform TEXT,
    app_version TEXT,
    source TEXT NOT NULL,
    errors TEXT NOT NULL
) STRICT;
CREATE INDEX rejected_events_of_app ON rejected_events (app_id, received_at, id);
CREATE INDEX rejected_events_of_alias ON rejected_events (alias_number, id);
