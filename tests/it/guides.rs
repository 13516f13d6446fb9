//! The tutorials and guides of `host/docs`, done as they are written: commands by a shell, programs by their languages,
//! JSON by the routes.

mod configurations;
mod examples;
mod tutorials;

use std::path::Path;
use std::process::{Command, Output};

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use nudge_campaigns::webhooks::EventType;
use nudge_platform::clock::Clock;
use serde_json::{Value, json};
use tempfile::TempDir;
use tests::{Backend, TestApp, site};

use crate::receiver::Receiver;
use crate::webhook_signatures::secret;

const API: &str = include_str!("../../host/docs/guides/api.md");
const DEAD_LETTERS: &str = include_str!("../../host/docs/guides/dead-letters.md");
const IDENTITY: &str = include_str!("../../host/docs/guides/identity.md");
const KEYS: &str = include_str!("../../host/docs/guides/keys.md");
const PERSONALIZATION: &str = include_str!("../../host/docs/guides/personalization.md");
const SEGMENT: &str = include_str!("../../host/docs/guides/segment.md");
const TRIGGERS: &str = include_str!("../../host/docs/guides/triggers.md");
const WEBHOOKS: &str = include_str!("../../host/docs/guides/webhooks.md");
const WEB_PUSH: &str = include_str!("../../host/docs/guides/web-push.md");

/// The fenced blocks of a guide that begin with a word or words.
fn blocks<'a>(guide: &'a str, info: &str) -> Vec<&'a str> {
    let fenced = guide.split("```").skip(1).step_by(2);
    let of_kind = fenced.filter_map(|block| {
        let (first, text) = block.split_once('\n')?;
        (first == info).then_some(text)
    });
    of_kind.collect()
}

/// A language that a guide has a program in.
struct Language {
    /// The word after a program's fence.
    name: &'static str,
    file: &'static str,
    /// What has to succeed where the language is installed.
    check: &'static [&'static str],
    build: &'static [&'static str],
    run: &'static [&'static str],
    /// Prints an identity token: what follows the guide's program.
    sign: &'static str,
    /// Prints whether a request is genuine: what follows the guide's program.
    verify: &'static str,
}

const LANGUAGES: [Language; 5] = [
    Language {
        name: "javascript",
        file: "guide.mjs",
        check: &["node", "--version"],
        build: &[],
        run: &["node", "guide.mjs"],
        sign: "console.log(identityToken(process.env.APP, 'customer-7'));",
        verify: "const { BODY, HEADER, SECRET } = process.env;
            console.log(verify(Buffer.from(BODY), HEADER, SECRET));",
    },
    Language {
        name: "python",
        file: "guide.py",
        check: &["python3", "-c", "import cryptography"],
        build: &[],
        run: &["python3", "guide.py"],
        sign: "import os\nprint(identity_token(os.environ['APP'], 'customer-7'))",
        verify: "import os\nbody, header, secret = (os.environ.get(name) for name in ('BODY', 'HEADER', 'SECRET'))
print(str(verify(body.encode(), header, secret)).lower())",
    },
    Language {
        name: "ruby",
        file: "guide.rb",
        check: &["ruby", "--version"],
        build: &[],
        run: &["ruby", "guide.rb"],
        sign: "puts identity_token(ENV['APP'], 'customer-7')",
        verify: "puts verify(ENV['BODY'], ENV['HEADER'], ENV['SECRET'])",
    },
    Language {
        name: "php",
        file: "guide.php",
        check: &["php", "--version"],
        build: &[],
        run: &["php", "guide.php"],
        sign: "echo identity_token(getenv('APP'), 'customer-7');",
        verify: "echo json_encode(verify(getenv('BODY'), getenv('HEADER') ?: null, getenv('SECRET')));",
    },
    Language {
        name: "go",
        file: "guide.go",
        check: &["go", "version"],
        build: &["go", "build", "-o", "guide", "guide.go", "main.go"],
        run: &["./guide"],
        sign: "package main\nimport (\"fmt\"; \"os\")\nfunc main() {
            token, err := IdentityToken(os.Getenv(\"APP\"), \"customer-7\")
            if err != nil { panic(err) }
            fmt.Print(token) }",
        verify: "package main\nimport (\"fmt\"; \"os\")\nfunc main() {
            fmt.Print(Verify([]byte(os.Getenv(\"BODY\")), os.Getenv(\"HEADER\"), os.Getenv(\"SECRET\"))) }",
    },
];

impl Language {
    /// Whether it is installed. Where it is not, it is left out, except in CI, where nothing is.
    #[expect(clippy::print_stderr, reason = "says what is left out")]
    fn is_there(&self) -> bool {
        let mut check = Command::new(self.check[0]);
        let there = check.args(&self.check[1..]).output();
        let there = there.is_ok_and(|output| output.status.success());
        let command = self.check.join(" ");
        assert!(
            there || std::env::var_os("CI").is_none(),
            "CI has no {}: {command}",
            self.name
        );
        if !there {
            eprintln!("left out: `{command}` fails");
        }
        there
    }

    /// Writes the guide's program into a folder, and the call that follows it.
    fn prepare(&self, folder: &Path, guide: &str, call: &str) {
        let programs = blocks(guide, self.name);
        assert_eq!(programs.len(), 1, "programs in {}", self.name);
        if self.build.is_empty() {
            let program = format!("{}\n{call}\n", programs[0]);
            std::fs::write(folder.join(self.file), program).unwrap();
        } else {
            std::fs::write(folder.join(self.file), programs[0]).unwrap();
            std::fs::write(folder.join("main.go"), call).unwrap();
            good(&command(folder, self.build).output().unwrap());
        }
    }

    /// What the program prints.
    fn prints(&self, folder: &Path, variables: &[(&str, &str)]) -> String {
        let mut run = command(folder, self.run);
        run.envs(variables.iter().copied());
        good(&run.output().unwrap()).trim().to_owned()
    }
}

/// A command of these words in a folder. Go keeps its builds in the tests' scratch folder.
fn command(folder: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).current_dir(folder);
    command.env("GOCACHE", Path::new(site!().scratch).join("go"));
    command
}

/// What a command printed, which succeeded.
fn good(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stdout);
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}{complaint}");
    said.into_owned()
}

/// A guide's reader: a shell in a folder, with the variables that the first tutorial's steps leave.
struct Reader {
    folder: TempDir,
    variables: Vec<(&'static str, String)>,
}

impl Reader {
    fn new(app: &TestApp) -> Self {
        let access = &app.access;
        let variables = [
            ("URL", access.base_url.clone()),
            ("APP", access.app_id.to_string()),
            ("WRITE_KEY", access.write_key.clone()),
            ("EDITOR", access.editor_token.clone()),
            ("ADMIN", access.admin_token.clone()),
        ];
        Self {
            folder: TempDir::with_prefix("nudge-test-").unwrap(),
            variables: variables.into(),
        }
    }

    fn knows(&mut self, name: &'static str, value: String) {
        self.variables.retain(|(known, _)| *known != name);
        self.variables.push((name, value));
    }

    /// Runs commands in one shell; answers what they print.
    async fn types(&self, commands: &[&str]) -> String {
        let mut shell = Command::new("bash");
        shell.args(["-euo", "pipefail", "-c", &commands.join("\n")]);
        shell.current_dir(self.folder.path());
        shell.envs(self.variables.iter().map(|(name, value)| (name, value)));
        let ran = tokio::task::spawn_blocking(move || shell.output());
        good(&ran.await.unwrap().unwrap())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn identity_tokens_of_every_language_identify() {
    let app = TestApp::start(site!(), Backend::Sqlite).await;
    let mut reader = Reader::new(&app);
    let commands = blocks(IDENTITY, "sh");
    let [key, session] = commands[..] else {
        panic!("a key is made, and a session begun: {commands:?}")
    };
    reader.types(&[key]).await;
    let app_id = app.access.app_id.to_string();
    for language in LANGUAGES.iter().filter(|language| language.is_there()) {
        let folder = reader.folder.path();
        language.prepare(folder, IDENTITY, language.sign);
        let token = language.prints(folder, &[("APP", &app_id)]);
        reader.knows("TOKEN", token);
        let answer: Value = serde_json::from_str(&reader.types(&[session]).await).unwrap();
        let subject = &answer["data"]["subject"];
        assert_eq!(subject["externalId"], "customer-7", "{}", language.name);
        assert_eq!(subject["identified"], true, "{}", language.name);
    }
    app.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_are_verified_in_every_language() {
    let app = TestApp::start(site!(), Backend::Sqlite).await;
    let receiver = Receiver::start().await;
    let mut reader = Reader::new(&app);
    reader.knows("RECEIVER", receiver.url("/"));
    let said = reader.types(&blocks(WEBHOOKS, "sh")).await;
    let first: Value = serde_json::from_str(&said).unwrap();
    let first = &first["data"];
    let rotate = format!(
        "/push/webhooks/{}/rotate-secret",
        first["id"].as_str().unwrap()
    );
    let second = app
        .post(&app.path(&rotate), &app.admin(), &json!({}))
        .await
        .ok();
    app.transit(app.id(), app.id(), &[EventType::Opened]).await;
    let got = receiver.wait(&app, "/", 1).await.remove(0);
    let header = got.header("x-service-signature");
    let changed = got.body.replace("opened", "closed");
    let other = format!("whsec_{}", STANDARD.encode([7; 32]));
    let late = late(&got.body, first);
    let (old, new) = (
        first["secret"].as_str().unwrap(),
        second["secret"].as_str().unwrap(),
    );
    let cases = [
        ("the new secret", &got.body, Some(header), new, true),
        ("the earlier secret", &got.body, Some(header), old, true),
        ("another secret", &got.body, Some(header), &other, false),
        ("another body", &changed, Some(header), new, false),
        ("an old request", &got.body, Some(&*late), old, false),
        ("an empty header", &got.body, Some(""), new, false),
        ("no header", &got.body, None, new, false),
    ];
    for language in LANGUAGES.iter().filter(|language| language.is_there()) {
        let folder = reader.folder.path();
        language.prepare(folder, WEBHOOKS, language.verify);
        for (case, body, header, secret, expected) in cases {
            let mut variables = vec![("BODY", &**body), ("SECRET", secret)];
            variables.extend(header.map(|header| ("HEADER", header)));
            let said = language.prints(folder, &variables);
            assert_eq!(said, expected.to_string(), "{}: {case}", language.name);
        }
    }
    app.finish().await;
}

/// Somebody who begins with a guide has not seen where its variables are set.
#[test]
fn guides_say_where_their_variables_are_set() {
    for guide in [
        API,
        DEAD_LETTERS,
        IDENTITY,
        KEYS,
        SEGMENT,
        WEBHOOKS,
        WEB_PUSH,
    ] {
        let commands = guide.find("$URL/").unwrap();
        let set = guide
            .find("](../tutorials/survey.md#1-a-server)")
            .unwrap_or(guide.len());
        let (title, _) = guide.split_once('\n').unwrap();
        assert!(set < guide.len(), "{title} does not say where $URL is set");
        let section = guide[commands..].find("\n## ").map(|end| commands + end);
        assert!(
            section.is_none_or(|end| set < end),
            "{title} says so too late"
        );
    }
}

/// A signature that was good a little over five minutes ago.
fn late(body: &str, webhook: &Value) -> String {
    let stamp = Clock::default().now().seconds() - 301;
    let key = hmac::Key::new(hmac::HMAC_SHA256, &secret(webhook));
    let signature = hmac::sign(&key, format!("{stamp}.{body}").as_bytes());
    format!("t={stamp},v1={}", URL_SAFE_NO_PAD.encode(signature))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_do_what_the_guides_say() {
    let app = TestApp::start(site!(), Backend::Sqlite).await;
    let reader = Reader::new(&app);
    let said = reader.types(&blocks(KEYS, "sh")).await;
    assert!(said.contains("\"accepted\":1"), "{said}");
    let said = reader.types(&blocks(WEB_PUSH, "sh")).await;
    assert!(said.contains("\"status\":\"active\""), "{said}");

    let said = reader.types(&blocks(SEGMENT, "sh")).await;
    assert!(said.contains("\"name\":\"order_completed\""), "{said}");

    let said = reader.types(&blocks(API, "sh")).await;
    let changed = "\"trigger\":{\"kind\":\"session_start\"}";
    assert!(said.contains(changed), "{said}");
    let said = reader.types(&blocks(DEAD_LETTERS, "sh")).await;
    assert!(said.contains("\"status\":\"replayed\""), "{said}");
    app.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn examples_are_taken_as_they_are_written() {
    let app = TestApp::start(site!(), Backend::Sqlite).await;
    let read = |text: &str| -> Value { serde_json::from_str(text).unwrap() };
    let mut bodies: Vec<(&str, Value)> = Vec::new();
    for trigger in blocks(TRIGGERS, "json trigger") {
        let body = json!({"name": "guide", "mode": "triggered", "trigger": read(trigger)});
        bodies.push(("/surveys", body));
    }
    for audience in blocks(TRIGGERS, "json audience") {
        let body = json!({"name": "guide", "audience": read(audience)});
        bodies.push(("/surveys", body));
    }
    for campaign in blocks(PERSONALIZATION, "json campaign") {
        bodies.push(("/campaigns", read(campaign)));
    }
    assert_eq!(bodies.len(), 7, "examples in the guides");
    for (path, body) in bodies {
        app.post(&app.path(path), &app.editor(), &body)
            .await
            .data(201);
    }
    app.finish().await;
}
