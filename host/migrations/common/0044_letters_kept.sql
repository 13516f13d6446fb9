-- Since when a dead letter is kept: its event may have come long before. None: a server of an earlier version made it.
ALTER TABLE dead_letters ADD COLUMN kept_at BIGINT;
