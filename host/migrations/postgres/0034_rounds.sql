-- What one process at a time does again and again: when it is to begin next. `node` is the process that has it in hand.
CREATE TABLE rounds (
    name TEXT NOT NULL PRIMARY KEY,
    node UUID,
    next_at BIGINT NOT NULL
);
INSERT INTO rounds (name, next_at) VALUES ('retention', 0);
