-- Which request an update was taken with: made again inside, it answers what it did at first.
ALTER TABLE property_mutations ADD COLUMN made_by BLOB;

-- What a plugin kept of people who were merged into this one: JSON texts in hexadecimal, until it stores what follows from both.
ALTER TABLE plugin_states ADD COLUMN merged TEXT;
