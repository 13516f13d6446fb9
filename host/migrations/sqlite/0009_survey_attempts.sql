-- What people answer. An attempt stays on the version of the survey that it began with. `position_question_id` is
-- the question that the person is at; none: at the end.
CREATE TABLE survey_attempts (
    id BLOB NOT NULL PRIMARY KEY,
    app_id BLOB NOT NULL,
    survey_id BLOB NOT NULL,
    survey_version INTEGER NOT NULL,
    subject_id BLOB NOT NULL,
    instruction_id BLOB UNIQUE,
    client_attempt_id BLOB,
    state TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    active_at INTEGER NOT NULL,
    completed_at INTEGER,
    last_question_id TEXT,
    position_question_id TEXT
) STRICT;
CREATE UNIQUE INDEX survey_attempts_of_subject ON survey_attempts (subject_id, survey_id, client_attempt_id);
CREATE INDEX survey_attempts_by_time ON survey_attempts (survey_id, started_at, id);
CREATE INDEX survey_attempts_by_activity ON survey_attempts (survey_id, active_at);
CREATE INDEX survey_attempts_on_their_own ON survey_attempts (survey_id, id) WHERE instruction_id IS NULL;

-- `counted`: the way through the flow leads by, and there is an answer. Results have these alone.
CREATE TABLE survey_answers (
    attempt_id BLOB NOT NULL,
    question_id TEXT NOT NULL,
    app_id BLOB NOT NULL,
    survey_id BLOB NOT NULL,
    value TEXT NOT NULL,
    counted INTEGER NOT NULL,
    started_at INTEGER NOT NULL,
    answered_at INTEGER NOT NULL,
    PRIMARY KEY (attempt_id, question_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX survey_answers_by_time ON survey_answers (survey_id, counted, answered_at, attempt_id, question_id);
CREATE INDEX survey_answers_of_question ON survey_answers (survey_id, question_id, answered_at);

-- What attempts come to, by the day (UTC, since 1970) on which they began. No row counts nothing.
CREATE TABLE survey_counts (
    survey_id BLOB NOT NULL,
    day INTEGER NOT NULL,
    question_id TEXT NOT NULL,
    measure TEXT NOT NULL,
    value TEXT NOT NULL,
    app_id BLOB NOT NULL,
    count INTEGER NOT NULL,
    total REAL NOT NULL,
    PRIMARY KEY (survey_id, day, question_id, measure, value)
) STRICT, WITHOUT ROWID;

-- How many saw a survey, without looking at what they saw.
CREATE INDEX instructions_by_status ON instructions (campaign_id, status, created_at);
