//! Every table, its key and whose its rows are: the one list that the deletion of an app, the deletion of a
//! person, the merge of two, exports and tests go by. Whoever adds a table adds it here.

mod statements;

/// A table.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// Its name.
    pub name: &'static str,
    /// The columns of its primary key.
    pub key: &'static str,
    /// How an app's rows are found.
    pub of_app: OfApp,
}

/// How an app's rows are found when all of the app is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OfApp {
    /// Through the aliases that own them.
    Alias,
    /// Through the subjects that own them.
    Subject,
    /// By this query for their keys, through rows of a table that is indexed; `$1` is the app.
    Selected(&'static str),
    /// They own others, and go once nothing is found through them any longer: some of them in this order of an index.
    Owner(&'static str),
    /// An index leads to them from the app. They go last.
    Indexed,
    /// The whole table has to be looked through.
    Unindexed,
    /// They are no app's, or something else removes them.
    No,
}

/// Rows of persons.
#[derive(Clone, Copy, Debug)]
pub struct Store {
    /// What people call it.
    pub name: &'static str,
    /// The table.
    pub table: Table,
    /// Which rows of it are a person's.
    pub rows: Personal,
    /// What becomes of them.
    pub erase: Erase,
    /// Rows that one statement erases at the most.
    pub step: i64,
    /// Where an export has them.
    pub copied: Copied,
    /// What becomes of them when the subject becomes part of another.
    pub merged: Merged,
}

/// Which rows are a person's. Every condition names the app, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Personal {
    /// Those of aliases, which are found in `suppressions` by the job: so they are found after the aliases are gone.
    Alias,
    /// Those of the subject, by this condition; `$1` is the app, `$2` the subject.
    Where(&'static str),
    /// Those whose keys this query finds; `$1` is the app, `$2` the subject.
    Selected(&'static str),
}

/// What becomes of a person's rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Erase {
    /// They are removed.
    Delete,
    /// They are nobody's any longer.
    Set(&'static str),
}

/// Where a person who asks for a copy finds the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copied {
    /// In this file of the archive.
    In(&'static str),
    /// In this member of its `profile.json`.
    Profile(&'static str),
    /// Nowhere: they say nothing of the person that the archive does not say.
    Not,
}

/// What becomes of rows of a subject that becomes part of another one, the winner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merged {
    /// They become the winner's.
    Moved,
    /// They become the winner's, but for those in whose place it has its own, with the same in these columns.
    MovedUnless(&'static [&'static str]),
    /// `merge` of the package of subjects has statements for them.
    Apart,
    /// They stay: an alias leads to them, or the subject's former id.
    Stays,
}

/// What attempts are called, which are in counts.
pub const SURVEY_ATTEMPTS: &str = "survey_attempts";
/// What the answers that attempts have are called.
pub const SURVEY_ANSWERS: &str = "survey_answers";

/// Rows that one statement removes unless they are large.
pub const STEP: i64 = 500;

/// Without statistics SQLite would take an index of the app before that of the subject.
const OF_SUBJECT: Personal = Personal::Where("subject_id = $2 AND (app_id = $1) IS TRUE");
/// The only index begins with the app.
const OF_SUBJECT_IN_APP: Personal = Personal::Where("subject_id = $2 AND app_id = $1");
/// What was noted under the subject, or under one that has become part of it.
const OF_SUBJECTS: Personal = Personal::Where(
    "app_id = $1 AND subject_id IN (SELECT $2 UNION ALL SELECT id FROM merged_subjects WHERE subject_id = $2)",
);

const fn table(name: &'static str, key: &'static str, of_app: OfApp) -> Table {
    Table { name, key, of_app }
}

const fn store(table: Table, rows: Personal, copied: Copied, merged: Merged) -> Store {
    Store {
        name: table.name,
        table,
        rows,
        erase: Erase::Delete,
        step: STEP,
        copied,
        merged,
    }
}

/// What is erased first, in this order. What is about to be processed goes before what processing makes, and an
/// export before its pieces, so that nothing comes after: whoever writes there takes the first of them too.
pub const BELONGINGS: &[Store] = &[
    Store {
        name: "pending_requests",
        ..store(
            table("pending", "id", OfApp::Alias),
            Personal::Alias,
            Copied::Not,
            Merged::Stays,
        )
    },
    store(
        table("timers", "id", OfApp::Subject),
        OF_SUBJECT,
        Copied::Profile("pluginTimers"),
        Merged::Apart,
    ),
    // Of one run, one of the two is enough; the same of what it led to.
    store(
        table("occasions", "id", OfApp::Subject),
        OF_SUBJECT,
        Copied::Not,
        Merged::MovedUnless(&["campaign_id", "key"]),
    ),
    store(
        table("run_firings", "campaign_id, key, subject_id", OfApp::Subject),
        OF_SUBJECT,
        Copied::Not,
        Merged::MovedUnless(&["campaign_id", "key"]),
    ),
    store(
        table("segment_checks", "subject_id", OfApp::Subject),
        OF_SUBJECT,
        Copied::Not,
        Merged::Apart,
    ),
    // Whoever was in a segment still counts as in it, so that nobody enters twice; the next look says who left.
    store(
        table("segment_members", "segment_id, subject_id", OfApp::Subject),
        OF_SUBJECT,
        Copied::Profile("segments"),
        Merged::MovedUnless(&["segment_id"]),
    ),
    store(
        table("dead_letters", "id", OfApp::Indexed),
        Personal::Alias,
        Copied::Profile("deadLetters"),
        Merged::Stays,
    ),
    store(
        table("rejected_events", "id", OfApp::Indexed),
        Personal::Alias,
        Copied::Profile("rejectedEvents"),
        Merged::Stays,
    ),
    store(
        table("events", "seq", OfApp::Alias),
        Personal::Alias,
        Copied::In("events.ndjson"),
        Merged::Stays,
    ),
    store(
        table(
            "removed_events",
            "alias_number, event_id",
            OfApp::Indexed,
        ),
        Personal::Alias,
        Copied::Not,
        Merged::Stays,
    ),
    store(
        table("instructions", "id", OfApp::Subject),
        OF_SUBJECT,
        Copied::Profile("instructions"),
        Merged::Apart,
    ),
    // Erased by `attempts::erasure`, which takes them out of the counts; these statements find what that left.
    Store {
        name: SURVEY_ATTEMPTS,
        ..store(
            table(
                "survey_attempts",
                "id",
                OfApp::Selected(
                    "SELECT a.id FROM (SELECT id FROM subjects WHERE app_id = $1 ORDER BY external_id, id LIMIT $2) s
                     JOIN survey_attempts a ON a.subject_id = s.id
                     WHERE NOT EXISTS (SELECT 1 FROM survey_answers n WHERE n.attempt_id = a.id)",
                ),
            ),
            OF_SUBJECT,
            Copied::Profile("surveyAttempts"),
            Merged::Moved,
        )
    },
    Store {
        name: SURVEY_ANSWERS,
        ..store(
            table(
                "survey_answers",
                "attempt_id, question_id",
                OfApp::Selected(
                    "SELECT n.attempt_id, n.question_id
                     FROM (SELECT id FROM subjects WHERE app_id = $1 ORDER BY external_id, id LIMIT $2) s
                     JOIN survey_attempts a ON a.subject_id = s.id JOIN survey_answers n ON n.attempt_id = a.id",
                ),
            ),
            Personal::Selected(
                "SELECT n.attempt_id, n.question_id FROM survey_attempts a
                 JOIN survey_answers n ON n.attempt_id = a.id WHERE a.subject_id = $2 AND a.app_id = $1",
            ),
            Copied::In("survey-answers.ndjson"),
            Merged::Stays,
        )
    },
    store(
        table("deliveries", "id", OfApp::Indexed),
        OF_SUBJECT,
        Copied::In("deliveries.ndjson"),
        Merged::Moved,
    ),
    // What plugins keep of both is noted before.
    store(
        table("plugin_states", "campaign_id, subject_id", OfApp::Subject),
        OF_SUBJECT,
        Copied::Profile("pluginStates"),
        Merged::MovedUnless(&["campaign_id"]),
    ),
    Store {
        name: "properties",
        ..store(
            table("subject_properties", "subject_id, key", OfApp::Subject),
            OF_SUBJECT,
            Copied::Profile("properties"),
            Merged::Apart,
        )
    },
    store(
        table("property_texts", "app_id, subject_id, key", OfApp::Indexed),
        OF_SUBJECT_IN_APP,
        Copied::Not,
        Merged::Apart,
    ),
    Store {
        name: "property_updates",
        ..store(
            table("property_mutations", "app_id, mutation_id", OfApp::Indexed),
            OF_SUBJECT,
            Copied::Not,
            Merged::Moved,
        )
    },
    store(
        table("devices", "subject_id, device_id", OfApp::Subject),
        OF_SUBJECT,
        Copied::In("devices.json"),
        Merged::Apart,
    ),
    store(
        table(
            "push_tokens",
            "app_id, subject_id, device_id",
            OfApp::Indexed,
        ),
        OF_SUBJECT,
        Copied::In("devices.json"),
        Merged::Moved,
    ),
    store(
        table(
            "plugin_log",
            "id",
            OfApp::Selected(
                "SELECT l.id FROM plugin_log_subjects s JOIN plugin_log l ON l.call_id = s.call_id WHERE s.app_id = $1",
            ),
        ),
        Personal::Selected(
            "SELECT l.id FROM plugin_log_subjects s JOIN plugin_log l ON l.call_id = s.call_id WHERE s.app_id = $1
             AND s.subject_id IN (SELECT $2 UNION ALL SELECT id FROM merged_subjects WHERE subject_id = $2)",
        ),
        Copied::Not,
        Merged::Stays,
    ),
    store(
        table(
            "plugin_log_subjects",
            "app_id, subject_id, call_id",
            OfApp::Indexed,
        ),
        OF_SUBJECTS,
        Copied::Not,
        Merged::Stays,
    ),
    store(
        table("plugin_differences", "id", OfApp::Indexed),
        OF_SUBJECTS,
        Copied::Not,
        Merged::Stays,
    ),
    store(
        table("decisions", "app_id, id", OfApp::Indexed),
        Personal::Selected(
            "SELECT d.app_id, d.id FROM decision_subjects s
             JOIN decisions d ON d.app_id = s.app_id AND d.id = s.decision_id WHERE (s.app_id = $1) IS TRUE
             AND s.subject_id IN (SELECT $2 UNION ALL SELECT id FROM merged_subjects WHERE subject_id = $2)",
        ),
        Copied::Not,
        Merged::Stays,
    ),
    // Those of others go with the decisions that they shared, the person's own rows last.
    store(
        table(
            "decision_subjects",
            "app_id, decision_id, subject_id",
            OfApp::Indexed,
        ),
        Personal::Selected(
            "SELECT o.app_id, o.decision_id, o.subject_id FROM decision_subjects s
             JOIN decision_subjects o ON o.app_id = s.app_id AND o.decision_id = s.decision_id WHERE (s.app_id = $1) IS TRUE
             AND s.subject_id IN (SELECT $2 UNION ALL SELECT id FROM merged_subjects WHERE subject_id = $2)
             ORDER BY CASE WHEN o.subject_id = s.subject_id THEN 1 ELSE 0 END",
        ),
        Copied::Not,
        Merged::Stays,
    ),
    // They go with their message too; so that their count is told, they go first.
    store(
        table(
            "webhook_attempts",
            "id",
            OfApp::Selected(
                "SELECT a.id FROM webhook_messages m JOIN webhook_attempts a ON a.message_id = m.id WHERE m.app_id = $1",
            ),
        ),
        Personal::Selected(
            "SELECT a.id FROM webhook_messages m JOIN webhook_attempts a ON a.message_id = m.id
             WHERE m.subject_id = $2 AND (m.app_id = $1) IS TRUE",
        ),
        Copied::Not,
        Merged::Stays,
    ),
    // What is sent of somebody stays as it was written.
    store(
        table("webhook_messages", "id", OfApp::Indexed),
        OF_SUBJECT,
        Copied::Not,
        Merged::Moved,
    ),
    store(
        table("client_sessions", "app_id, client_id", OfApp::Indexed),
        OF_SUBJECT,
        Copied::Profile("clientSessions"),
        Merged::Moved,
    ),
    Store {
        name: "exports",
        erase: Erase::Set("subject_id = NULL, reference = NULL, expires_at = 0"),
        ..store(
            table("privacy_exports", "id", OfApp::Indexed),
            OF_SUBJECT,
            Copied::Not,
            Merged::Moved,
        )
    },
    Store {
        name: "export_archives",
        step: 16,
        ..store(
            table(
                "privacy_export_chunks",
                "export_id, number",
                OfApp::Selected(
                    "SELECT c.export_id, c.number FROM privacy_exports e
                     JOIN privacy_export_chunks c ON c.export_id = e.id WHERE e.app_id = $1",
                ),
            ),
            OF_SUBJECT,
            Copied::Not,
            Merged::Moved,
        )
    },
];

/// What the rest belongs to; erased once nothing of that is left.
pub const OWNERS: &[Store] = &[
    store(
        table("merged_subjects", "id", OfApp::Subject),
        OF_SUBJECT,
        Copied::Not,
        Merged::Moved,
    ),
    store(
        table("aliases", "number", OfApp::Owner("kind, value")),
        OF_SUBJECT,
        Copied::Profile("aliases"),
        Merged::Apart,
    ),
    Store {
        name: "profile",
        step: 1,
        ..store(
            table("subjects", "id", OfApp::Owner("external_id, id")),
            Personal::Where("id = $2 AND app_id = $1"),
            Copied::Profile("profile"),
            Merged::Apart,
        )
    },
];

/// Tables that hold nothing of a person: what the server, its operators and its customers put there.
pub const IMPERSONAL: &[Table] = &[
    table("app_counts", "app_id, begins_at, kind", OfApp::Indexed),
    table("apps", "id", OfApp::No),
    // Names of people who manage apps, and of no one else.
    table("audit_log", "id", OfApp::Indexed),
    table("campaign_runs", "campaign_id", OfApp::Indexed),
    table(
        "campaign_versions",
        "campaign_id, version",
        OfApp::Selected(
            "SELECT v.campaign_id, v.version FROM campaigns c
             JOIN campaign_versions v ON v.campaign_id = c.id WHERE c.app_id = $1",
        ),
    ),
    table("campaigns", "id", OfApp::Indexed),
    // Names of people who manage apps, as in the audit log.
    table("console_links", "hash", OfApp::No),
    table("console_logins", "hash", OfApp::No),
    table("console_sessions", "hash", OfApp::No),
    table("decision_configs", "app_id, digest", OfApp::Indexed),
    table(
        "definition_counts",
        "app_id, definition_id, begins_at",
        OfApp::Indexed,
    ),
    table("definitions", "id", OfApp::Indexed),
    table(
        "delivery_counts",
        "app_id, campaign_id, hour, state",
        OfApp::Indexed,
    ),
    table("identity_keys", "app_id, kid", OfApp::Indexed),
    // What a job is asked to do names a person only until it is done, and how far it has come nobody who was deleted.
    table("jobs", "id", OfApp::Indexed),
    table("keys", "id", OfApp::Indexed),
    table("nodes", "id", OfApp::No),
    table(
        "plugin_calls",
        "owner_id, name, app_id, minute, version, since, outcome, bucket",
        OfApp::Unindexed,
    ),
    table(
        "plugin_comparisons",
        "owner_id, name, app_id, version, since",
        OfApp::Unindexed,
    ),
    // Plugins go with their versions, and with their components unless others have them too.
    table("plugin_components", "digest", OfApp::No),
    table("plugin_slots", "app_id, kind", OfApp::Indexed),
    table("plugin_versions", "app_id, name, version", OfApp::No),
    table("plugins", "app_id, name", OfApp::No),
    table("push_credentials", "id", OfApp::Indexed),
    table("replayed_letters", "id", OfApp::Indexed),
    table("rounds", "name", OfApp::No),
    table(
        "segment_sizes",
        "segment_id, day",
        OfApp::Selected(
            "SELECT z.segment_id, z.day FROM segments s JOIN segment_sizes z ON z.segment_id = s.id WHERE s.app_id = $1",
        ),
    ),
    table("segment_sweeps", "app_id", OfApp::Indexed),
    table("segment_uses", "segment_id, user_id", OfApp::Indexed),
    // The newest person as of the conditions is nobody who was deleted.
    table("segments", "id", OfApp::Indexed),
    table("server_secrets", "name", OfApp::No),
    // Sums, out of which a person's attempts are taken when they are erased.
    table(
        "survey_counts",
        "survey_id, day, question_id, measure, value",
        OfApp::Selected(
            "SELECT c.survey_id, c.day, c.question_id, c.measure, c.value FROM campaigns s
             JOIN survey_counts c ON c.survey_id = s.id WHERE s.app_id = $1 AND s.kind = 'survey'",
        ),
    ),
    // Keyed hashes, and numbers that lead to no alias any longer.
    table("suppressions", "app_id, hash", OfApp::Indexed),
    table("webhook_secrets", "name", OfApp::Indexed),
    table("webhooks", "id", OfApp::Indexed),
];

/// All stores of persons, in the order in which they are erased.
pub fn personal() -> impl Iterator<Item = &'static Store> {
    BELONGINGS.iter().chain(OWNERS)
}

/// All tables.
pub fn all() -> impl Iterator<Item = &'static Table> {
    personal().map(|store| &store.table).chain(IMPERSONAL)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_statement_is_about_its_tenant() {
        let mut names = BTreeSet::new();
        for store in personal() {
            assert!(names.insert(store.name), "{}", store.name);
            let (Personal::Where(text) | Personal::Selected(text)) = store.rows else {
                continue;
            };
            for part in ["app_id = $1", "= $2"] {
                assert!(text.contains(part), "{}: {part}", store.name);
            }
        }
        for table in all() {
            if let OfApp::Selected(text) = table.of_app {
                assert!(text.contains("app_id = $1"), "{}", table.name);
            }
        }
    }
}
