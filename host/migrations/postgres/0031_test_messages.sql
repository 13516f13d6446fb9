-- A test of an in-app message is an instruction that nothing counts.
ALTER TABLE instructions ADD COLUMN test BOOLEAN NOT NULL DEFAULT FALSE;
