-- What the request of an event that broke its definition said about it, as JSON, so that a replay stores the event as it
-- would have been. Empty for letters of other stages, whose events are stored, and for those older than these columns.
ALTER TABLE dead_letters ADD COLUMN origin TEXT;
ALTER TABLE dead_letters ADD COLUMN client_timestamp BIGINT;
