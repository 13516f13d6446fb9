-- What people answer. An attempt stays on the version of the survey that it began with. `position_question_id` is
-- the question that the person is at; none: at the end.
CREATE TABLE survey_attempts (
    id UUID NOT NULL PRIMARY KEY,
    app_id UUID NOT NULL,
    survey_id UUID NOT NULL,
    survey_version BIGINT NOT NULL,
    subject_id UUID NOT NULL,
    instruction_id UUID UNIQUE,
    client_attempt_id UUID,
    state TEXT NOT NULL,
    started_at BIGINT NOT NULL,
    active_at BIGINT NOT NULL,
    completed_at BIGINT,
    last_question_id TEXT,
    position_question_id TEXT
);
CREATE UNIQUE INDEX survey_attempts_of_subject ON survey_attempts (subject_id, survey_id, client_attempt_id);
CREATE INDEX survey_attempts_by_time ON survey_attempts (survey_id, started_at, id);
CREATE INDEX survey_attempts_by_activity ON survey_attempts (survey_id, active_at);
CREATE INDEX survey_attempts_on_their_own ON survey_attempts (survey_id, id) WHERE instruction_id IS NULL;

-- `counted`: the way through the flow leads by, and there is an answer. Results have these alone.
CREATE TABLE survey_answers (
    attempt_id UUID NOT NULL,
    question_id TEXT NOT NULL,
    app_id UUID NOT NULL,
    survey_id UUID NOT NULL,
    value TEXT NOT NULL,
    counted BOOLEAN NOT NULL,
    started_at BIGINT NOT NULL,
    answered_at BIGINT NOT NULL,
    PRIMARY KEY (attempt_id, question_id)
);
CREATE INDEX survey_answers_by_time ON survey_answers (survey_id, counted, answered_at, attempt_id, question_id);
CREATE INDEX survey_answers_of_question ON survey_answers (survey_id, question_id, answered_at);

-- What attempts come to, by the day (UTC, since 1970) on which they began. No row counts nothing.
CREATE TABLE survey_counts (
    survey_id UUID NOT NULL,
    day BIGINT NOT NULL,
    question_id TEXT NOT NULL,
    measure TEXT NOT NULL,
    value TEXT NOT NULL,
    app_id UUID NOT NULL,
    count BIGINT NOT NULL,
    total DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (survey_id, day, question_id, measure, value)
);

-- How many saw a survey, without looking at what they saw.
CREATE INDEX instructions_by_status ON instructions (campaign_id, status, created_at);
