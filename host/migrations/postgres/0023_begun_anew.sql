-- An alias whose name somebody had who was deleted: what is of that moment or before is the deleted person's, and refused.
ALTER TABLE aliases ADD COLUMN events_after BIGINT;
