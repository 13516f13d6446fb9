-- Dead letters are replayed in the order in which their events happened, and grouped by what is wrong with them.
DROP INDEX dead_letters_of_app;
CREATE INDEX dead_letters_by_time ON dead_letters (app_id, timestamp, id);
CREATE INDEX dead_letters_by_reason ON dead_letters (app_id, event_name, reason, received_at, id);

-- Of the trigger stage: the session that the event was in, and whether what failed was the beginning of that (1).
ALTER TABLE dead_letters ADD COLUMN session_number BIGINT;
ALTER TABLE dead_letters ADD COLUMN opens_session BIGINT;

-- What happened in an app, by the hour that begins then.
CREATE TABLE app_counts (
    app_id UUID NOT NULL,
    begins_at BIGINT NOT NULL,
    kind TEXT NOT NULL,
    count BIGINT NOT NULL,
    PRIMARY KEY (app_id, begins_at, kind)
);

-- How a definition's events fared, by the ten minutes that begin then.
CREATE TABLE definition_counts (
    app_id UUID NOT NULL,
    definition_id UUID NOT NULL,
    begins_at BIGINT NOT NULL,
    seen BIGINT NOT NULL,
    violations BIGINT NOT NULL,
    PRIMARY KEY (app_id, definition_id, begins_at)
);
