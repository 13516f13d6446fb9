-- SQLite's rows are found by their number, which is their key: there are no shards.
SELECT 1;
