-- What was clicked of a push message: the id of an action.
ALTER TABLE deliveries ADD COLUMN action_id TEXT;
