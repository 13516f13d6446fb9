-- Retention takes the oldest letters of an app, however many are kept. Their age is that of `kept_at`, or of the event where a
-- server of an earlier version made the letter.
CREATE INDEX IF NOT EXISTS dead_letters_by_age ON dead_letters (app_id, (coalesce(kept_at, received_at)));
