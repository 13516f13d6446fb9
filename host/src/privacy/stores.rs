//! Everything that is stored of a person: the one list that deletion, export and tests go by. Whoever adds a
//! table adds it here, or to [`IMPERSONAL`] with what it holds instead.

/// Through what rows belong to a person, and what a statement's `$2` is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The number of an alias, found in `suppressions` by the job: `$2` is the job. So they are found after the
    /// aliases are gone.
    Alias,
    /// The subject: `$2` is its id.
    Subject,
}

/// Where a person who asks for a copy finds the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copied {
    /// In this file of the archive.
    In(&'static str),
    /// Nowhere: they say nothing of the person that the archive does not say.
    Not,
}

/// Some rows of persons.
#[derive(Clone, Copy, Debug)]
pub struct Store {
    /// What people call it.
    pub name: &'static str,
    /// The table.
    pub table: &'static str,
    /// What its rows belong to.
    pub owner: Owner,
    /// Rows that one statement erases at the most: its `$3`.
    pub step: i64,
    /// Erases rows of the app `$1`; changes nothing once nothing is left.
    pub erase: &'static str,
    /// Where an export has them.
    pub copied: Copied,
}

/// Rows that one statement erases unless they are large.
const STEP: i64 = 500;
/// The store of attempts, which are in counts.
pub const SURVEY_ATTEMPTS: &str = "survey_attempts";
/// The store of the answers that attempts have.
pub const SURVEY_ANSWERS: &str = "survey_answers";
const PROFILE: Copied = Copied::In("profile.json");

/// What is erased first, in this order. What is about to be processed goes before what processing makes, and an
/// export before its pieces, so that nothing comes after: whoever writes there takes the first of them too.
pub const BELONGINGS: &[Store] = &[
    Store {
        name: "pending_requests",
        table: "pending",
        owner: Owner::Alias,
        step: STEP,
        erase: "DELETE FROM pending WHERE id IN (
            SELECT p.id FROM suppressions s JOIN pending p ON p.alias_number = s.alias_number
            WHERE s.job_id = $2 AND p.app_id = $1 LIMIT $3)",
        copied: Copied::Not,
    },
    Store {
        name: "timers",
        table: "timers",
        owner: Owner::Subject,
        step: STEP,
        erase: "DELETE FROM timers WHERE id IN (
            SELECT id FROM timers WHERE subject_id = $2 AND app_id = $1 LIMIT $3)",
        copied: Copied::Not,
    },
    Store {
        name: "occasions",
        table: "occasions",
        owner: Owner::Subject,
        step: STEP,
        erase: "DELETE FROM occasions WHERE id IN (
            SELECT id FROM occasions WHERE subject_id = $2 AND app_id = $1 LIMIT $3)",
        copied: Copied::Not,
    },
    Store {
        name: "run_firings",
        table: "run_firings",
        owner: Owner::Subject,
        step: STEP,
        erase: "DELETE FROM run_firings WHERE (campaign_id, key, subject_id) IN (
            SELECT campaign_id, key, subject_id FROM run_firings WHERE subject_id = $2 AND app_id = $1 LIMIT $3)",
        copied: Copied::Not,
    },
    Store {
        name: "dead_letters",
        table: "dead_letters",
        owner: Owner::Alias,
        step: STEP,
        erase: "DELETE FROM dead_letters WHERE id IN (
            SELECT d.id FROM suppressions s JOIN dead_letters d ON d.alias_number = s.alias_number
            WHERE s.job_id = $2 AND d.app_id = $1 LIMIT $3)",
        copied: PROFILE,
    },
    Store {
        name: "events",
        table: "events",
        owner: Owner::Alias,
        step: STEP,
        erase: "DELETE FROM events WHERE seq IN (
            SELECT e.seq FROM suppressions s JOIN events e ON e.alias_number = s.alias_number
            WHERE s.job_id = $2 AND e.app_id = $1 LIMIT $3)",
        copied: Copied::In("events.ndjson"),
    },
    Store {
        name: "instructions",
        table: "instructions",
        owner: Owner::Subject,
        step: STEP,
        erase: "DELETE FROM instructions WHERE id IN (
            SELECT id FROM instructions WHERE subject_id = $2 AND app_id = $1 LIMIT $3)",
        copied: PROFILE,
    },
    // Erased by `attempts::erasure`, which takes them out of the counts; these statements find what that left.
    Store {
        name: SURVEY_ATTEMPTS,
        table: "survey_attempts",
        owner: Owner::Subject,
        step: STEP,
        erase: "DELETE FROM survey_attempts WHERE id IN (
            SELECT id FROM survey_attempts WHERE subject_id = $2 AND app_id = $1 LIMIT $3)",
        copied: PROFILE,
    },
    Store {
        name: SURVEY_ANSWERS,
        table: "survey_answers",
        owner: Owner::Subject,
        step: STEP,
        erase: "DELETE FROM survey_answers WHERE (attempt_id, question_id) IN (
            SELECT n.attempt_id, n.question_id FROM survey_attempts a
            JOIN survey_answers n ON n.attempt_id = a.id WHERE a.subject_id = $2 AND a.app_id = $1 LIMIT $3)",
        copied: Copied::In("survey-answers.ndjson"),
    },
    Store {
        name: "deliveries",
        table: "deliveries",
        owner: Owner::Subject,
        step: STEP,
        erase: "DELETE FROM deliveries WHERE id IN (
            SELECT id FROM deliveries WHERE subject_id = $2 AND app_id = $1 LIMIT $3)",
        copied: Copied::In("deliveries.ndjson"),
    },
    Store {
        name: "plugin_states",
        table: "plugin_states",
        owner: Owner::Subject,
        step: STEP,
        erase: "DELETE FROM plugin_states WHERE (campaign_id, subject_id) IN (
            SELECT campaign_id, subject_id FROM plugin_states WHERE subject_id = $2 AND app_id = $1 LIMIT $3)",
        copied: Copied::Not,
    },
    Store {
        name: "properties",
        table: "subject_properties",
        owner: Owner::Subject,
        step: STEP,
        erase: "DELETE FROM subject_properties WHERE (subject_id, key) IN (
            SELECT subject_id, key FROM subject_properties WHERE subject_id = $2 AND app_id = $1 LIMIT $3)",
        copied: PROFILE,
    },
    Store {
        name: "property_texts",
        table: "property_texts",
        owner: Owner::Subject,
        step: STEP,
        erase: "DELETE FROM property_texts WHERE (app_id, subject_id, key) IN (
            SELECT app_id, subject_id, key FROM property_texts WHERE subject_id = $2 AND app_id = $1 LIMIT $3)",
        copied: Copied::Not,
    },
    Store {
        name: "property_updates",
        table: "property_mutations",
        owner: Owner::Subject,
        step: STEP,
        erase: "DELETE FROM property_mutations WHERE (app_id, mutation_id) IN (
            SELECT app_id, mutation_id FROM property_mutations WHERE subject_id = $2 AND app_id = $1 LIMIT $3)",
        copied: Copied::Not,
    },
    Store {
        name: "devices",
        table: "devices",
        owner: Owner::Subject,
        step: STEP,
        erase: "DELETE FROM devices WHERE (subject_id, device_id) IN (
            SELECT subject_id, device_id FROM devices WHERE subject_id = $2 AND app_id = $1 LIMIT $3)",
        copied: Copied::In("devices.json"),
    },
    Store {
        name: "push_tokens",
        table: "push_tokens",
        owner: Owner::Subject,
        step: STEP,
        erase: "DELETE FROM push_tokens WHERE (app_id, device_id) IN (
            SELECT app_id, device_id FROM push_tokens WHERE subject_id = $2 AND app_id = $1 LIMIT $3)",
        copied: Copied::In("devices.json"),
    },
    Store {
        name: "plugin_log",
        table: "plugin_log",
        owner: Owner::Subject,
        step: STEP,
        erase: "DELETE FROM plugin_log WHERE id IN (
            SELECT l.id FROM plugin_log_subjects s JOIN plugin_log l ON l.call_id = s.call_id
            WHERE s.app_id = $1
              AND (s.subject_id = $2 OR s.subject_id IN (SELECT id FROM merged_subjects WHERE subject_id = $2)) LIMIT $3)",
        copied: Copied::Not,
    },
    Store {
        name: "plugin_log_subjects",
        table: "plugin_log_subjects",
        owner: Owner::Subject,
        step: STEP,
        erase: "DELETE FROM plugin_log_subjects WHERE (app_id, subject_id, call_id) IN (
            SELECT app_id, subject_id, call_id FROM plugin_log_subjects WHERE app_id = $1
              AND (subject_id = $2 OR subject_id IN (SELECT id FROM merged_subjects WHERE subject_id = $2)) LIMIT $3)",
        copied: Copied::Not,
    },
    Store {
        name: "plugin_differences",
        table: "plugin_differences",
        owner: Owner::Subject,
        step: STEP,
        erase: "DELETE FROM plugin_differences WHERE id IN (
            SELECT id FROM plugin_differences WHERE app_id = $1
              AND (subject_id = $2 OR subject_id IN (SELECT id FROM merged_subjects WHERE subject_id = $2)) LIMIT $3)",
        copied: Copied::Not,
    },
    Store {
        name: "decisions",
        table: "decisions",
        owner: Owner::Subject,
        step: STEP,
        erase: "DELETE FROM decisions WHERE (app_id, id) IN (
            SELECT d.app_id, d.id FROM decision_subjects s
            JOIN decisions d ON d.app_id = s.app_id AND d.id = s.decision_id
            WHERE s.app_id = $1
              AND (s.subject_id = $2 OR s.subject_id IN (SELECT id FROM merged_subjects WHERE subject_id = $2)) LIMIT $3)",
        copied: Copied::Not,
    },
    // Those of others go with the decisions that they shared, the person's own rows last.
    Store {
        name: "decision_subjects",
        table: "decision_subjects",
        owner: Owner::Subject,
        step: STEP,
        erase: "DELETE FROM decision_subjects WHERE (app_id, decision_id, subject_id) IN (
            SELECT o.app_id, o.decision_id, o.subject_id FROM decision_subjects s
            JOIN decision_subjects o ON o.app_id = s.app_id AND o.decision_id = s.decision_id
            WHERE s.app_id = $1
              AND (s.subject_id = $2 OR s.subject_id IN (SELECT id FROM merged_subjects WHERE subject_id = $2))
            ORDER BY CASE WHEN o.subject_id = s.subject_id THEN 1 ELSE 0 END LIMIT $3)",
        copied: Copied::Not,
    },
    // They go with their message too; so that their count is told, they go first.
    Store {
        name: "webhook_attempts",
        table: "webhook_attempts",
        owner: Owner::Subject,
        step: STEP,
        erase: "DELETE FROM webhook_attempts WHERE id IN (
            SELECT a.id FROM webhook_messages m JOIN webhook_attempts a ON a.message_id = m.id
            WHERE m.subject_id = $2 AND m.app_id = $1 LIMIT $3)",
        copied: Copied::Not,
    },
    Store {
        name: "webhook_messages",
        table: "webhook_messages",
        owner: Owner::Subject,
        step: STEP,
        erase: "DELETE FROM webhook_messages WHERE id IN (
            SELECT id FROM webhook_messages WHERE subject_id = $2 AND app_id = $1 LIMIT $3)",
        copied: Copied::Not,
    },
    Store {
        name: "client_sessions",
        table: "client_sessions",
        owner: Owner::Subject,
        step: STEP,
        erase: "DELETE FROM client_sessions WHERE (app_id, client_id) IN (
            SELECT app_id, client_id FROM client_sessions WHERE subject_id = $2 AND app_id = $1 LIMIT $3)",
        copied: PROFILE,
    },
    Store {
        name: "exports",
        table: "privacy_exports",
        owner: Owner::Subject,
        step: STEP,
        erase: "UPDATE privacy_exports SET subject_id = NULL, reference = NULL, expires_at = 0 WHERE id IN (
            SELECT id FROM privacy_exports WHERE subject_id = $2 AND app_id = $1 LIMIT $3)",
        copied: Copied::Not,
    },
    Store {
        name: "export_archives",
        table: "privacy_export_chunks",
        owner: Owner::Subject,
        step: 16,
        erase: "DELETE FROM privacy_export_chunks WHERE (export_id, number) IN (
            SELECT export_id, number FROM privacy_export_chunks WHERE subject_id = $2 AND app_id = $1 LIMIT $3)",
        copied: Copied::Not,
    },
];

/// What the rest belongs to; erased once nothing of that is left.
pub const OWNERS: &[Store] = &[
    Store {
        name: "merged_subjects",
        table: "merged_subjects",
        owner: Owner::Subject,
        step: STEP,
        erase: "DELETE FROM merged_subjects WHERE id IN (
            SELECT id FROM merged_subjects WHERE subject_id = $2 AND app_id = $1 LIMIT $3)",
        copied: Copied::Not,
    },
    Store {
        name: "aliases",
        table: "aliases",
        owner: Owner::Subject,
        step: STEP,
        erase: "DELETE FROM aliases WHERE number IN (
            SELECT number FROM aliases WHERE subject_id = $2 AND app_id = $1 LIMIT $3)",
        copied: PROFILE,
    },
    Store {
        name: "profile",
        table: "subjects",
        owner: Owner::Subject,
        step: 1,
        erase: "DELETE FROM subjects WHERE id IN (SELECT id FROM subjects WHERE id = $2 AND app_id = $1 LIMIT $3)",
        copied: PROFILE,
    },
];

/// Tables that hold nothing of a person: what the server, its operators and its customers put there.
pub const IMPERSONAL: &[&str] = &[
    "app_counts",
    "apps",
    // Names of people who manage apps, and of no one else.
    "audit_log",
    "campaign_runs",
    "decision_configs",
    "definition_counts",
    "definitions",
    "delivery_counts",
    "identity_keys",
    // What a job is asked to do names a person only until it is done.
    "jobs",
    "keys",
    "nodes",
    "plugin_calls",
    "plugin_comparisons",
    "plugin_components",
    "plugin_slots",
    "plugin_versions",
    "plugins",
    "push_campaign_versions",
    "push_campaigns",
    "push_credentials",
    "server_secrets",
    // Sums, out of which a person's attempts are taken when they are erased.
    "survey_counts",
    "survey_versions",
    "surveys",
    // Keyed hashes, and numbers that lead to no alias any longer.
    "suppressions",
    "webhook_secrets",
    "webhooks",
];

/// All stores of persons, in the order in which they are erased.
pub fn all() -> impl Iterator<Item = &'static Store> {
    BELONGINGS.iter().chain(OWNERS)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_statement_is_about_its_table_and_its_tenant() {
        let mut names = BTreeSet::new();
        for store in all() {
            assert!(names.insert(store.name), "{}", store.name);
            let begins = ["DELETE FROM ", "UPDATE "]
                .iter()
                .any(|verb| store.erase.starts_with(&format!("{verb}{} ", store.table)));
            assert!(begins, "{}", store.name);
            for part in ["app_id = $1", "= $2", "LIMIT $3"] {
                assert!(store.erase.contains(part), "{}: {part}", store.name);
            }
        }
    }
}
