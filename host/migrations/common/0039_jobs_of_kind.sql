-- Jobs of an app that have not ended are counted by kind, and those that ended long ago are removed by kind: neither walks over
-- the others.
CREATE INDEX jobs_of_kind ON jobs (app_id, kind, completed_at);
