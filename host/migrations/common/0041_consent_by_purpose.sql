-- When each purpose was last consented to or refused: two people who become one have the later word on each. Where it is not said,
-- it was at `consent_at`.
ALTER TABLE subjects ADD COLUMN analytics_consent_at BIGINT;
ALTER TABLE subjects ADD COLUMN messaging_consent_at BIGINT;
