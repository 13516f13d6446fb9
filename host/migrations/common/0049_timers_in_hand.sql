-- The timers that a process has claimed are looked for every two seconds, however many wait.
CREATE INDEX IF NOT EXISTS timers_in_hand ON timers (node, due_at) WHERE node IS NOT NULL;
