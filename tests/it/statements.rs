//! The text of statements on `events` and `pending`, the two tables that a distributed database has cut by alias.
//!
//! Each names the alias's number, and none has a correlated subquery on them, but for those that are listed with a reason.
//! Statements are read in the sources, piece by piece as they are put together. What is made of the list of tables
//! (`platform/src/tables.rs`) is not seen.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Where a statement is: the file, and the function or constant in it.
type Place = (&'static str, &'static str);

/// Statements that are about no alias, and why.
const OF_NO_ALIAS: [(Place, &str); 9] = [
    (
        ("pipeline/src/claims.rs", "anything_waits"),
        "whoever waits",
    ),
    (
        ("pipeline/src/claims.rs", "release"),
        "all that processes had which are gone",
    ),
    (
        ("pipeline/src/explain/store.rs", "trace"),
        "a request of a number that a person names",
    ),
    (("people/src/feed/store.rs", "names"), "all people's"),
    (
        ("people/src/feed/store.rs", "events_behind"),
        "all people's",
    ),
    (("people/src/feed/store.rs", "newest_seq"), "all people's"),
    (("records/src/events/store.rs", "next_name"), "all people's"),
    (("src/cli/demo/database.rs", "waiting"), "all people's"),
    (("src/retention/events.rs", "next_name"), "all people's"),
];

/// Statements with a correlated subquery on the tables, and why.
const CORRELATED: [(Place, &str); 10] = [
    (
        ("pipeline/src/claims.rs", "own_requests"),
        "a look into an index for each alias of a person",
    ),
    (("pipeline/src/claims.rs", "HAS_EARLIER"), "the same"),
    (
        ("pipeline/src/store.rs", "delete_requests"),
        "the same, which has to be true when the request goes",
    ),
    (
        ("pipeline/src/history.rs", "only_processed"),
        "by the alias's number and a key",
    ),
    (
        ("pipeline/src/history.rs", "newest_of_many"),
        "by the alias's number",
    ),
    (("pipeline/src/history.rs", "latest_of_many"), "the same"),
    (
        ("people/src/feed/store.rs", "names"),
        "a look into an index for each name",
    ),
    (
        ("pipeline/src/runs/store.rs", "people"),
        "not asked on a distributed database",
    ),
    (("pipeline/src/runs/store.rs", "IN_TURN"), "the same"),
    (
        ("records/src/scheduled_work.rs", "in_turn"),
        "what has to be true when it is claimed",
    ),
];

const TABLES: [&str; 2] = ["events", "pending"];
/// Words after a table that are not its alias.
const KEYWORDS: [&str; 16] = [
    "WHERE",
    "ON",
    "JOIN",
    "CROSS",
    "LEFT",
    "INNER",
    "ORDER",
    "GROUP",
    "LIMIT",
    "UNION",
    "SET",
    "FOR",
    "AND",
    "OR",
    "SELECT",
    "RETURNING",
];

/// A piece of a source: a name, a text, or a sign.
#[derive(Debug)]
enum Piece {
    Name(String),
    Text(String),
    Sign,
}

fn pieces(source: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut rest = source;
    while let Some(first) = rest.chars().next() {
        let taken = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if first == '"' {
            let mut end = 1;
            while !rest[end..].starts_with('"') {
                end += if rest[end..].starts_with('\\') { 2 } else { 1 };
                while !rest.is_char_boundary(end) {
                    end += 1;
                }
            }
            pieces.push(Piece::Text(rest[1..end].to_owned()));
            end + 1
        } else if rest.starts_with("'\"'") {
            3
        } else if rest.starts_with("'static ") {
            8
        } else if first.is_alphabetic() || first == '_' {
            let is_part = |c: char| c.is_alphanumeric() || c == '_';
            let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
            pieces.push(Piece::Name(rest[..end].to_owned()));
            end
        } else {
            if !first.is_whitespace() {
                pieces.push(Piece::Sign);
            }
            first.len_utf8()
        };
        rest = &rest[taken.min(rest.len())..];
    }
    pieces
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|it| it == "rs") {
            found.push(path);
        }
    }
}

/// The sources of the server by their paths in `host`, without their unit tests.
fn server() -> BTreeMap<String, Vec<Piece>> {
    let host = Path::new(env!("CARGO_MANIFEST_DIR")).join("../host");
    let mut found = Vec::new();
    sources(&host, &mut found);
    let read = |path: PathBuf| {
        let name = path
            .strip_prefix(&host)
            .unwrap()
            .to_str()
            .unwrap()
            .to_owned();
        let text = fs::read_to_string(&path).unwrap();
        let code = text.split("#[cfg(test)]\nmod ").next().unwrap();
        name.contains("src/").then(|| (name, pieces(code)))
    };
    found.into_iter().filter_map(read).collect()
}

/// Statements by the functions and constants that they are in. A text that begins with a verb begins a statement; a
/// constant is put where its name is.
fn statements(pieces: &[Piece], constants: &BTreeMap<String, String>) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    let mut item = String::new();
    let mut before = "";
    for piece in pieces {
        let text = match piece {
            Piece::Name(name) => {
                if ["fn", "const", "static"].contains(&before) {
                    item.clone_from(name);
                }
                before = name;
                match constants
                    .get(name)
                    .filter(|_| !item.is_empty() && *name != item)
                {
                    Some(text) => text,
                    None => continue,
                }
            }
            Piece::Text(text) => text,
            Piece::Sign => {
                before = "";
                continue;
            }
        };
        let verb = text.split_whitespace().next().unwrap_or_default();
        let begins = ["SELECT", "INSERT", "UPDATE", "DELETE", "WITH"].contains(&verb);
        match found.last_mut() {
            Some((owner, statement)) if *owner == item && !begins => {
                statement.push(' ');
                statement.push_str(text);
            }
            _ => found.push((item.clone(), text.clone())),
        }
    }
    found
}

/// Words, names with a table before them, and the signs that matter.
fn words(statement: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = statement;
    while let Some(first) = rest.chars().next() {
        let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
        let end = if is_part(first) {
            rest.find(|c| !is_part(c)).unwrap_or(rest.len())
        } else {
            first.len_utf8()
        };
        if is_part(first) || "(),".contains(first) {
            words.push(&rest[..end]);
        }
        rest = &rest[end..];
    }
    words
}

/// What a query, with all in its parentheses, is made of.
#[derive(Default)]
struct Query<'a> {
    tables: BTreeSet<&'a str>,
    /// What its columns can be named after.
    names: BTreeSet<&'a str>,
    /// What columns in it are named after, but for those that a query within it explains.
    uses: BTreeSet<&'a str>,
    /// Whether a query within it is correlated and on one of the tables.
    correlated: bool,
}

/// Reads until the parenthesis closes.
fn query<'a>(words: &mut std::iter::Peekable<std::vec::IntoIter<&'a str>>) -> Query<'a> {
    let mut query = Query::default();
    let mut from = false;
    let mut expects = false;
    while let Some(word) = words.next() {
        match word {
            ")" => break,
            "(" => {
                let is_query = words.peek() == Some(&"SELECT");
                let inner = self::query(words);
                let own = if is_query {
                    inner.names
                } else {
                    BTreeSet::new()
                };
                let outside: Vec<&str> = inner.uses.difference(&own).copied().collect();
                let is_ours = TABLES.iter().any(|table| inner.tables.contains(table));
                query.correlated |= inner.correlated || is_query && is_ours && !outside.is_empty();
                query.uses.extend(outside);
                if std::mem::take(&mut expects) {
                    query.names.extend(alias(words));
                }
            }
            "FROM" | "JOIN" | "UPDATE" | "INTO" => (from, expects) = (true, true),
            "," if from => expects = true,
            "WHERE" | "ORDER" | "GROUP" | "LIMIT" | "SELECT" | "SET" | "ON" | "UNION" => {
                (from, expects) = (false, false);
            }
            _ if expects => {
                expects = false;
                query.tables.insert(word);
                query.names.insert(alias(words).unwrap_or(word));
            }
            _ => query
                .uses
                .extend(word.split_once('.').map(|(name, _)| name)),
        }
    }
    query
}

/// What a table is called in the query.
fn alias<'a>(words: &mut std::iter::Peekable<std::vec::IntoIter<&'a str>>) -> Option<&'a str> {
    words.next_if_eq(&"AS");
    let is_name = |word: &&str| word.starts_with(char::is_alphabetic) && !KEYWORDS.contains(word);
    words.next_if(is_name)
}

/// Whether a statement is on one of the tables, and whether it has a correlated subquery on them.
fn judge(statement: &str) -> (bool, bool) {
    let words = words(statement);
    let pairs = || words.windows(2).map(|pair| (pair[0], pair[1]));
    let verbs = ["FROM", "JOIN", "INTO", "UPDATE"];
    let is_ours = pairs().any(|(verb, table)| verbs.contains(&verb) && TABLES.contains(&table));
    let correlated = query(&mut words.clone().into_iter().peekable()).correlated;
    (is_ours, correlated)
}

/// Complains about what is found and not listed, and what is listed and not found.
#[track_caller]
fn compare(what: &str, found: &BTreeSet<(String, String)>, listed: &[(Place, &str)]) {
    let listed: BTreeSet<(String, String)> = listed
        .iter()
        .map(|((file, item), _)| ((*file).to_owned(), (*item).to_owned()))
        .collect();
    let new: Vec<_> = found.difference(&listed).collect();
    let gone: Vec<_> = listed.difference(found).collect();
    assert!(
        new.is_empty() && gone.is_empty(),
        "{what}: {new:#?}; listed for nothing: {gone:#?}"
    );
}

#[test]
fn statements_on_events_and_requests_name_the_alias() {
    let server = server();
    let texts = |pieces: &Vec<Piece>| statements(pieces, &BTreeMap::new());
    let all = server.values().flat_map(texts);
    let constants: BTreeMap<String, String> = all
        .filter(|(item, text)| item.chars().all(|c| c == '_' || c.is_uppercase()) && judge(text).0)
        .collect();
    let (mut aliasless, mut correlated) = (BTreeSet::new(), BTreeSet::new());
    let mut count = 0;
    for (file, pieces) in &server {
        for (item, statement) in statements(pieces, &constants) {
            let (is_ours, is_correlated) = judge(&statement);
            let place = || (file.clone(), item.clone());
            count += usize::from(is_ours);
            if is_ours && !statement.contains("alias_number") {
                aliasless.insert(place());
            }
            if is_correlated {
                correlated.insert(place());
            }
        }
    }
    assert!(count > 40, "{count} statements");
    compare("without the alias's number", &aliasless, &OF_NO_ALIAS);
    compare("with a correlated subquery", &correlated, &CORRELATED);
}

#[test]
fn correlated_subqueries_are_found() {
    for (statement, expected) in [
        (
            "SELECT id FROM pending WHERE alias_number IN (SELECT v.alias_number FROM v)",
            false,
        ),
        (
            "SELECT seq FROM events WHERE seq >= (SELECT min(id) FROM pending) * 512",
            false,
        ),
        (
            "SELECT v.id FROM v WHERE NOT EXISTS (SELECT 1 FROM events e WHERE e.seq = v.id)",
            true,
        ),
        (
            "SELECT (SELECT max(p.id) FROM pending AS p, v WHERE p.id < v.id) FROM v",
            false,
        ),
        (
            "SELECT a.number FROM aliases a WHERE (SELECT count(*) FROM pending WHERE alias_number = a.number) > 0",
            true,
        ),
        (
            "SELECT a.number FROM aliases a WHERE (SELECT t.id FROM timers t WHERE t.id = a.id) IS NULL",
            false,
        ),
        (
            "SELECT n.x FROM (SELECT max(e.seq) AS x FROM events e) n WHERE n.x > 1",
            false,
        ),
        (
            "SELECT a.id FROM a WHERE a.id = (SELECT b.id FROM b WHERE b.id = (SELECT e.seq FROM events e WHERE e.seq = a.id))",
            true,
        ),
    ] {
        assert_eq!(judge(statement).1, expected, "{statement}");
    }
    assert!(judge("DELETE FROM pending WHERE id = $1").0);
    assert!(!judge("SELECT id FROM pending_jobs").0);
}
