-- Where people's devices are reached: one row a device of a person, and a token in one row only. What an SDK calls a device is
-- no secret and no proof: who names somebody else's has a row of their own.
ALTER TABLE push_tokens DROP CONSTRAINT push_tokens_pkey, ADD PRIMARY KEY (app_id, subject_id, device_id);

-- People whose deletion is queued, whom nothing that reads shows.
CREATE INDEX subjects_hidden ON subjects (app_id, id) WHERE suppressed;
