-- Dead letters that were replayed, as long as they would have been kept: whoever replays one again is told that it was.
CREATE TABLE replayed_letters (
    id UUID NOT NULL PRIMARY KEY,
    app_id UUID NOT NULL,
    received_at BIGINT NOT NULL
);
CREATE INDEX replayed_letters_of_app ON replayed_letters (app_id, received_at);
