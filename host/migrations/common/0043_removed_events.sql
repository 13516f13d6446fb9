-- The ids of events that an app's retention removes while they may still be sent again: they stay known until `until`, when
-- ingest takes no event of their time any longer.
CREATE TABLE removed_events (
    alias_number BIGINT NOT NULL,
    event_id UUID NOT NULL,
    app_id UUID NOT NULL,
    noted_at BIGINT NOT NULL,
    until BIGINT NOT NULL,
    PRIMARY KEY (alias_number, event_id)
);
CREATE INDEX removed_events_of_app ON removed_events (app_id, until);
