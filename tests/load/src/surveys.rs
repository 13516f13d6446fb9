//! What it costs to read the results of a survey with many attempts.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Args;
use nudge_campaigns::surveys::flow::{Answers, Flow, Walker};
use nudge_campaigns::surveys::{Content, Survey};
use nudge_db::{Db, Dialect, Rows, Timestamp, Tx};
use nudge_platform::clock::Clock;
use nudge_platform::id;
use nudge_records::instructions::counterpart::attempt_id_of;
use nudge_surveys::attempts::store;
use nudge_surveys::attempts::tally::{self, AttemptState, Tally};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::child::Server;
use crate::client::Connection;
use crate::database::{Databases, Kind};
use crate::people::{ask, row};
use crate::random::Random;
use crate::report::{Table, say};

/// People who answer; everybody does so many times.
const PEOPLE: usize = 10_000;
/// The span that attempts are spread over, in microseconds: 90 days.
const SPAN: u64 = 90 * 24 * 3600 * 1_000_000;
const WARM_UP: usize = 3;

/// What is measured.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[arg(long, value_enum, default_value = "sqlite")]
    database: Kind,
    #[arg(long, default_value_t = 200_000)]
    attempts: usize,
    /// Requests of each kind.
    #[arg(long, default_value_t = 50)]
    requests: usize,
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let databases = Databases::new(arguments.database)?;
    let server = Server::start(&databases, 0).await?;
    let app_id: Uuid = server.access("appId")?.parse()?;
    let now = Clock::default().now();
    let mut filler = Filler {
        db: server.db(),
        app_id,
        survey: survey(app_id, now)?,
        random: Random::new(17),
        now,
        counts: BTreeMap::new(),
    };
    let started = Instant::now();
    let people = filler.people().await?;
    filler.attempts(arguments.attempts, &people).await?;
    say(format_args!(
        "{} attempts after {:.0?}",
        arguments.attempts,
        started.elapsed()
    ))?;
    let survey_id = filler.survey.id;
    measure(&server, survey_id, &arguments).await?;
    server.stop().await
}

fn survey(app_id: Uuid, now: Timestamp) -> anyhow::Result<Survey> {
    let options: Vec<Value> = (0..6)
        .map(|number| json!({"id": format!("o{number}"), "label": format!("Option {number}")}))
        .collect();
    let content: Content = serde_json::from_value(json!({
        "name": "How was it?",
        "mode": "on_demand",
        "flow": {
            "questions": [
                {"id": "score", "type": "nps", "title": "How?", "required": true},
                {"id": "rating", "type": "rating", "title": "How good?", "scale": 5},
                {"id": "which", "type": "single_choice", "title": "Which?", "options": options},
                {"id": "what", "type": "multiple_choice", "title": "What?", "options": options},
                {"id": "why", "type": "long_text", "title": "Why?"},
            ],
            "branches": [
                {"id": "b", "from": "score", "when": {"questionId": "score", "operator": "nps_bucket", "value": "promoter"},
                 "to": {"questionId": "which"}},
            ],
        },
    }))?;
    Ok(Survey {
        id: id::new(now),
        app_id,
        version: 1,
        content,
        created_at: now,
        updated_at: now,
        activated_at: None,
    })
}

/// Fills a database past the server.
struct Filler<'a> {
    db: &'a Db,
    app_id: Uuid,
    survey: Survey,
    random: Random,
    now: Timestamp,
    /// By day.
    counts: BTreeMap<i64, Tally>,
}

/// An attempt with its answers, to be written.
struct Made {
    attempt_id: Uuid,
    subject_id: Uuid,
    position: i64,
    started_at: Timestamp,
    state: &'static str,
    at: Option<String>,
    answers: Vec<(String, Value)>,
}

impl Filler<'_> {
    async fn people(&mut self) -> anyhow::Result<Vec<Uuid>> {
        let mut people = Vec::with_capacity(PEOPLE);
        let mut tx = self.db.write().await?;
        let compiled = nudge_campaigns::lifecycle::Compiled::default();
        nudge_campaigns::store::insert(&mut tx, &self.survey, &compiled).await?;
        while people.len() < PEOPLE {
            let size = Rows::MOST.min(PEOPLE - people.len());
            let ids: Vec<Uuid> = (0..size).map(|_| id::new(self.now)).collect();
            self.some_people(&mut tx, people.len(), &ids).await?;
            people.extend(ids);
        }
        tx.commit().await?;
        Ok(people)
    }

    async fn some_people(&self, tx: &mut Tx, first: usize, ids: &[Uuid]) -> anyhow::Result<()> {
        tx.with_rows("v(id)", Rows::new().uuids(ids.iter().copied()))
            .push(
                " INSERT INTO subjects (id, suppressed, first_seen_at, last_seen_at, event_count, session_number,
                                        instruction_count, last_seq, version, app_id)
                  SELECT v.id, ",
            )
            .push_bind(false)
            .push(", ")
            .push_bind(self.now)
            .push(", ")
            .push_bind(self.now)
            .push(", 10, 1, 100, 0, 0, ")
            .push_bind(self.app_id)
            .push(" FROM v WHERE true")
            .execute()
            .await?;
        let names = (first..first + ids.len()).map(|number| format!("person-{number}"));
        let rows = Rows::new().uuids(ids.iter().copied()).texts(names);
        tx.with_rows("v(id, name)", rows)
            .push(
                " INSERT INTO aliases (kind, value, folded, subject_id, token_epoch, created_at, app_id)
                  SELECT 'anonymous', v.name, v.name, v.id, 0, ",
            )
            .push_bind(self.now)
            .push(", ")
            .push_bind(self.app_id)
            .push(" FROM v WHERE true")
            .execute()
            .await?;
        Ok(())
    }

    async fn attempts(&mut self, count: usize, people: &[Uuid]) -> anyhow::Result<()> {
        let flow = self.survey.content.flow.clone().unwrap_or_default();
        let walker = Walker::new(&flow);
        let mut made = 0;
        while made < count {
            let mut tx = self.db.write().await?;
            for _ in 0..10 {
                let size = Rows::MOST.min(count - made);
                if size == 0 {
                    break;
                }
                let some: Vec<Made> = (made..made + size)
                    .map(|number| self.make(&flow, &walker, number, people))
                    .collect::<anyhow::Result<_>>()?;
                self.write(&mut tx, &some).await?;
                made += size;
            }
            tx.commit().await?;
        }
        let mut tx = self.db.write().await?;
        let key = (self.app_id, self.survey.id);
        for (day, counts) in &self.counts {
            store::add_counts(&mut tx, key, *day, counts).await?;
        }
        tx.commit().await?;
        if self.db.dialect() == Dialect::Postgres {
            // What it does by and by, at once.
            let mut tx = self.db.write_each().await?;
            tx.sql("VACUUM ANALYZE").execute().await?;
        }
        Ok(())
    }

    /// Somebody's attempt: most answer all that is asked, some stop.
    fn make(
        &mut self,
        flow: &Flow,
        walker: &Walker<'_>,
        number: usize,
        people: &[Uuid],
    ) -> anyhow::Result<Made> {
        let ago = i64::try_from(self.random.below(SPAN))?;
        let started_at = Timestamp(self.now.0 - ago);
        let (mut answers, mut last) = (Answers::new(), None::<String>);
        let mut given = Vec::new();
        let stops = self.random.below(4) == 0;
        let position = loop {
            let way = walker.way(&answers);
            let Some(question) = way.position(last.as_deref()) else {
                break None;
            };
            if stops && self.random.below(3) == 0 {
                break Some(question.id.clone());
            }
            let value = self.value(&question.id);
            answers.insert(question.id.clone(), value.clone());
            given.push((question.id.clone(), value));
            last = Some(question.id.clone());
            if given.len() > flow.questions.len() {
                break None;
            }
        };
        let standing = AttemptState {
            completed: position.is_none(),
            alone: false,
            last: last.as_deref(),
        };
        let counts = tally::tally(walker, &answers, standing);
        let day = self.counts.entry(store::day_of(started_at)).or_default();
        day.merge(&counts);
        let subject = people.get(number % people.len()).context("somebody")?;
        Ok(Made {
            attempt_id: id::made_now(started_at),
            subject_id: *subject,
            position: i64::try_from(number / people.len())?,
            started_at,
            state: if position.is_none() {
                "completed"
            } else {
                "started"
            },
            at: position,
            answers: given,
        })
    }

    fn value(&mut self, question: &str) -> Value {
        match question {
            "score" => json!(self.random.below(11)),
            "rating" => json!(1 + self.random.below(5)),
            "which" => json!({"optionId": format!("o{}", self.random.below(6))}),
            "what" => json!({"optionIds": ["o1", format!("o{}", 2 + self.random.below(4))]}),
            _ => json!(format!(
                "because of reason {}",
                self.random.below(1_000_000)
            )),
        }
    }

    async fn write(&self, tx: &mut Tx, some: &[Made]) -> anyhow::Result<()> {
        self.write_instructions(tx, some).await?;
        let rows = Rows::new()
            .uuids(some.iter().map(|made| made.attempt_id))
            .uuids(some.iter().map(|made| made.subject_id))
            .uuids(some.iter().map(|made| attempt_id_of(made.attempt_id)))
            .texts(some.iter().map(|made| made.state.to_owned()))
            .timestamps(some.iter().map(|made| made.started_at))
            .texts(some.iter().map(|made| made.at.clone()));
        tx.with_rows("v(id, subject_id, instruction_id, state, at, position)", rows)
            .push(
                " INSERT INTO survey_attempts (id, subject_id, instruction_id, state, started_at, active_at, completed_at,
                                               position_question_id, survey_version, app_id, survey_id)
                  SELECT v.id, v.subject_id, v.instruction_id, v.state, v.at, v.at,
                         CASE v.state WHEN 'completed' THEN v.at END, v.position, 1, ",
            )
            .push_bind(self.app_id)
            .push(", ")
            .push_bind(self.survey.id)
            .push(" FROM v WHERE true")
            .execute()
            .await?;
        let answers = some
            .iter()
            .flat_map(|made| made.answers.iter().map(move |answer| (made, answer)));
        let answers: Vec<_> = answers.collect();
        for chunk in answers.chunks(Rows::MOST) {
            let rows = Rows::new()
                .uuids(chunk.iter().map(|(made, _)| made.attempt_id))
                .texts(chunk.iter().map(|(_, (question, _))| question.clone()))
                .texts(chunk.iter().map(|(_, (_, value))| value.to_string()))
                .timestamps(chunk.iter().map(|(made, _)| made.started_at));
            tx.with_rows("v(attempt_id, question_id, value, at)", rows)
                .push(
                    " INSERT INTO survey_answers (attempt_id, question_id, value, started_at, answered_at, counted, app_id,
                                                  survey_id)
                      SELECT v.attempt_id, v.question_id, v.value, v.at, v.at, ",
                )
                .push_bind(true)
                .push(", ")
                .push_bind(self.app_id)
                .push(", ")
                .push_bind(self.survey.id)
                .push(" FROM v WHERE true")
                .execute()
                .await?;
        }
        Ok(())
    }

    async fn write_instructions(&self, tx: &mut Tx, some: &[Made]) -> anyhow::Result<()> {
        let rows = Rows::new()
            .uuids(some.iter().map(|made| attempt_id_of(made.attempt_id)))
            .uuids(some.iter().map(|made| made.subject_id))
            .integers(some.iter().map(|made| made.position))
            .texts(some.iter().map(|made| {
                let status = if made.at.is_none() {
                    "completed"
                } else {
                    "displayed"
                };
                status.to_owned()
            }))
            .timestamps(some.iter().map(|made| made.started_at));
        tx.with_rows("v(id, subject_id, position, status, at)", rows)
            .push(
                " INSERT INTO instructions (id, subject_id, position, kind, campaign_version, priority, created_at,
                                            available_at, expires_at, status, status_at, plugin_name, plugin_version,
                                            app_id, campaign_id)
                  SELECT v.id, v.subject_id, v.position, 'survey', 1, 0, v.at, v.at, v.at, v.status, v.at, 'load', '1.0.0', ",
            )
            .push_bind(self.app_id)
            .push(", ")
            .push_bind(self.survey.id)
            .push(" FROM v WHERE true")
            .execute()
            .await?;
        Ok(())
    }
}

async fn measure(server: &Server, survey_id: Uuid, arguments: &Arguments) -> anyhow::Result<()> {
    let base = format!("/v1/apps/{}/surveys/{survey_id}", server.access("appId")?);
    let token = format!("Bearer {}", server.access("viewerToken")?);
    let mut connection = Connection::open(server.address()).await?;
    let now =
        nudge_platform::clock::to_text(Clock::default().now().minus(Duration::from_hours(36)));
    let mut table = Table::new(&["request", "p50", "p99"]);
    for (name, rest) in [
        ("analytics", "/analytics".to_owned()),
        (
            "analytics until an hour of a day",
            format!("/analytics?to={now}"),
        ),
        ("responses, first page of 50", "/responses".to_owned()),
        (
            "responses, page 1,000 of 200",
            "/responses?page=1000&limit=200".to_owned(),
        ),
        ("attempts, first page of 50", "/attempts".to_owned()),
        (
            "attempts, first page of 200",
            "/attempts?limit=200".to_owned(),
        ),
        ("recipients, first page of 50", "/recipients".to_owned()),
        (
            "recipients in a state that is rare",
            "/recipients?state=dismissed".to_owned(),
        ),
    ] {
        let path = format!("{base}{rest}");
        let mut latencies = Vec::with_capacity(arguments.requests);
        for number in 0..WARM_UP + arguments.requests {
            let latency = ask(&mut connection, &path, &token).await?.0;
            if number >= WARM_UP {
                latencies.push(latency);
            }
        }
        row(&mut table, name, &latencies);
    }
    Ok(table.print()?)
}
