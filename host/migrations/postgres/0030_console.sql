-- Who is signed in to the console. `hash` is the SHA-256 of the cookie, in hexadecimal; the sealed tokens are bound to
-- it. Either a link opened the session, and `grants` says what it opens (JSON), or an issuer did, whose tokens are kept.
-- `renewal` counts how often they were renewed; one process at a time does, until `renewing_until`.
CREATE TABLE console_sessions (
    hash TEXT NOT NULL PRIMARY KEY,
    subject TEXT NOT NULL,
    grants TEXT,
    issuer TEXT,
    sealed TEXT,
    token_ends_at BIGINT NOT NULL,
    renewal BIGINT NOT NULL,
    renewing_until BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    used_at BIGINT NOT NULL,
    ends_at BIGINT NOT NULL
);
CREATE INDEX console_sessions_by_end ON console_sessions (ends_at, hash);
CREATE INDEX console_sessions_by_use ON console_sessions (used_at, hash);

-- Links that sign somebody in, once. `hash` is the SHA-256 of the code, in hexadecimal.
CREATE TABLE console_links (
    hash TEXT NOT NULL PRIMARY KEY,
    subject TEXT NOT NULL,
    grants TEXT NOT NULL,
    ends_at BIGINT NOT NULL
);
CREATE INDEX console_links_by_end ON console_links (ends_at, hash);

-- People who are at an issuer to sign in. `hash` is the SHA-256 of the secret that their browser keeps.
CREATE TABLE console_logins (
    hash TEXT NOT NULL PRIMARY KEY,
    issuer TEXT NOT NULL,
    return_to TEXT NOT NULL,
    ends_at BIGINT NOT NULL
);
CREATE INDEX console_logins_by_end ON console_logins (ends_at, hash);
