-- Which request an update was taken with: made again inside, it answers what it did at first.
ALTER TABLE property_mutations ADD COLUMN made_by UUID;
