-- The timer that a plugin failed on: its id, the plugin's key and payload, when it fell due, and the number of the person's last
-- event then. Letters of events have none.
ALTER TABLE dead_letters ADD COLUMN timer_id UUID;
ALTER TABLE dead_letters ADD COLUMN timer_key TEXT;
ALTER TABLE dead_letters ADD COLUMN timer_payload BYTEA;
ALTER TABLE dead_letters ADD COLUMN timer_due_at BIGINT;
ALTER TABLE dead_letters ADD COLUMN timer_last_seq BIGINT;
