-- What the SDK calls the session that a request belongs to.
ALTER TABLE pending ADD COLUMN session_id TEXT;
-- What SDKs call the person's latest sessions, with their numbers: a JSON list, the latest last.
ALTER TABLE subjects ADD COLUMN session_ids TEXT;
