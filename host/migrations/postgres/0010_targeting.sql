-- Why the host let a firing have no effect: such a row has the status `suppressed` and is offered to nobody.
ALTER TABLE instructions ADD COLUMN suppressed_by TEXT;
-- When the person first saw it.
ALTER TABLE instructions ADD COLUMN displayed_at BIGINT;
-- Since when it counts towards caps: its issue, and then its display. Nothing: it does not.
ALTER TABLE instructions ADD COLUMN counted_at BIGINT;
UPDATE instructions SET counted_at = created_at WHERE status <> 'discarded';
UPDATE instructions SET counted_at = status_at, displayed_at = status_at
    WHERE status IN ('displayed', 'dismissed', 'completed');
CREATE INDEX instructions_counted ON instructions (subject_id, counted_at) WHERE counted_at IS NOT NULL;
CREATE INDEX instructions_counted_of_campaign ON instructions (subject_id, campaign_id, counted_at)
    WHERE counted_at IS NOT NULL;
CREATE INDEX instructions_suppressed ON instructions (app_id, created_at) WHERE suppressed_by IS NOT NULL;

-- When a survey that runs is over.
ALTER TABLE surveys ADD COLUMN ends_at BIGINT;
CREATE INDEX surveys_by_end ON surveys (ends_at) WHERE ends_at IS NOT NULL;
