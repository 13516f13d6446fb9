-- SQLite changes rows in place.
SELECT 1;
