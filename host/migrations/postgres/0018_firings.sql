-- The event of the campaign's firing that the host held back last: consent, a cap, quiet hours or the like.
ALTER TABLE plugin_states ADD COLUMN held_back UUID;

-- Whom a run has led to something for (a firing, or a timer), while it goes on: of two people who become one amid it, one is
-- enough. `key` is the occasion's, `event_seq` its event.
CREATE TABLE run_firings (
    campaign_id UUID NOT NULL,
    subject_id UUID NOT NULL,
    key TEXT NOT NULL,
    app_id UUID NOT NULL,
    event_seq BIGINT NOT NULL,
    PRIMARY KEY (campaign_id, key, subject_id)
);
CREATE INDEX run_firings_of_subject ON run_firings (subject_id);
