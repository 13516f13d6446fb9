-- When a version of a plugin was rolled back last, and why: JSON.
ALTER TABLE plugins ADD COLUMN last_rollback TEXT;
-- What the active version left of a subject, and what the candidate would have left: JSON.
ALTER TABLE plugin_differences ADD COLUMN old_value TEXT;
ALTER TABLE plugin_differences ADD COLUMN new_value TEXT;
-- What the call was about in which a line was logged: lists of ids, as JSON.
ALTER TABLE plugin_log ADD COLUMN campaign_ids TEXT;
ALTER TABLE plugin_log ADD COLUMN event_ids TEXT;
-- What the plugin said when it failed, for people.
ALTER TABLE dead_letters ADD COLUMN detail TEXT;
CREATE INDEX plugin_log_subjects_of_call ON plugin_log_subjects (call_id);
