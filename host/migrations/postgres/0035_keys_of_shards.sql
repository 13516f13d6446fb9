-- Keys have the alias's number, so that these tables can be distributed by it: a shard keeps its own keys unique.
ALTER TABLE events DROP CONSTRAINT events_pkey, ADD PRIMARY KEY (seq, alias_number);
ALTER TABLE pending DROP CONSTRAINT pending_pkey, ADD PRIMARY KEY (id, alias_number);
