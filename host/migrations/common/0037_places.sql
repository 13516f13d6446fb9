-- Jobs that have ended need no place among people any longer, which is somebody's id; no more does a segment need the id of
-- somebody who is gone.
UPDATE jobs SET input = 'null', progress = 'null'
WHERE completed_at IS NOT NULL AND kind IN ('campaign.run', 'segment.members');
UPDATE segments SET newest_subject = COALESCE(
    (SELECT s.id FROM subjects s WHERE s.app_id = segments.app_id AND s.id < segments.newest_subject AND NOT s.suppressed
     ORDER BY s.id DESC LIMIT 1),
    segments.id)
WHERE NOT EXISTS (SELECT 1 FROM subjects s WHERE s.id = segments.newest_subject);
