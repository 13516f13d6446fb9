-- How far a first look at an app's people has come for a segment: the person, and the version of the conditions. Whoever is not
-- behind that person is known, so that a campaign hears of their changes before everybody was looked at. None: nobody was.
ALTER TABLE segments ADD COLUMN looked_to UUID;
ALTER TABLE segments ADD COLUMN looked_version BIGINT;
