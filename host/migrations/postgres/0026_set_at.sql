-- When a timer was set: one of a clock that was ahead, and was set back since, waits no longer than it was to.
ALTER TABLE timers ADD COLUMN set_at BIGINT NOT NULL DEFAULT 0;
