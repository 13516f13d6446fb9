-- A person's row changes with each batch of events. Where its page has room for the next version, no index has to change.
ALTER TABLE subjects SET (fillfactor = 80);
