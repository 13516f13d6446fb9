-- In-app messages are instructions that keep what they say: the message as it was made, its variant, and what was pressed first.
ALTER TABLE instructions ADD COLUMN content TEXT;
ALTER TABLE instructions ADD COLUMN variant_id BLOB;
ALTER TABLE instructions ADD COLUMN clicked_at INTEGER;
ALTER TABLE instructions ADD COLUMN action_id TEXT;
