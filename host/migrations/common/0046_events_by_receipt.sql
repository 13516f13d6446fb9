-- The feed of an app that has events of very many names goes by their receipt, whatever they are called. The expression is the
-- app's id, and keeps the index to the feed: no other statement writes it so.
CREATE INDEX IF NOT EXISTS events_by_receipt ON events ((coalesce(app_id, app_id, app_id)), received_at, seq);
