//! Copies of what is stored of a person: a job writes a zip into the database, piece by piece.
//!
//! One page of records and one piece of the archive are in memory, however much there is. After a crash the job
//! begins anew. Each piece is written only if the person is still there.

mod archive;
pub mod http;
mod records;
mod store;

use std::time::Duration;

use archive::Archive;
use nudge_db::{Timestamp, Tx};
use nudge_platform::audit::{self, Entry};
use nudge_platform::clock;
use nudge_platform::jobs::{self, Error, NewJob, RunningJob};
use nudge_platform::secrets::hexadecimal;
use nudge_records::pseudonyms::Pseudonyms;
use nudge_records::subjects;
use records::{After, AliasRow, List};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use store::{ExportRow, Key};
use uuid::Uuid;

use super::Reference;
use crate::services::Services;

/// The kind of the job.
pub const KIND: &str = "privacy.export";
/// How long an archive is kept (contract 6).
const LIFETIME: Duration = Duration::from_hours(7 * 24);
/// Bytes of a piece of an archive.
const CHUNK: usize = 1024 * 1024;
/// Exports of an app that may be queued or running.
const MOST_UNFINISHED: usize = 100;
/// What becomes of the export of somebody who is deleted meanwhile.
const GONE: &str = "the person's data was deleted";

/// Why an export was not queued.
#[derive(Debug, thiserror::Error)]
pub enum ExportRefusal {
    /// There is no such person.
    #[error("no such person")]
    NotFound,
    /// Too many have not ended.
    #[error("too many exports at once")]
    TooMany,
    /// The database.
    #[error("the database refused")]
    Storage(#[from] nudge_db::Error),
}

/// Ends the exports of a person: those that are there are to be had no longer, and none that is being made is finished.
/// The deletion erases them.
pub(super) async fn end(tx: &mut Tx, app_id: Uuid, subject_id: Uuid) -> nudge_db::Result<()> {
    store::end(tx, app_id, subject_id).await
}

/// Queues an export; answers its id.
pub async fn queue(
    tx: &mut Tx,
    pseudonyms: &Pseudonyms,
    app_id: Uuid,
    reference: &Reference,
    actor: &str,
    now: Timestamp,
) -> Result<Uuid, ExportRefusal> {
    let (kind, value) = reference.alias();
    let subject_id = subjects::store::find_owner(tx, app_id, kind, value)
        .await?
        .ok_or(ExportRefusal::NotFound)?;
    // Locked, so that a deletion that is queued meanwhile ends this export too.
    let person = subjects::store::locked(tx, app_id, subject_id).await?;
    let person = person.ok_or_else(nudge_db::Error::lost_race)?;
    if person.suppressed {
        return Err(ExportRefusal::NotFound);
    }
    let job = NewJob {
        app_id,
        kind: KIND,
        input: json!({}),
        requested_by: actor,
    };
    let queued = jobs::queue_limited(tx, &job, MOST_UNFINISHED, now).await?;
    let export_id = queued.ok_or(ExportRefusal::TooMany)?;
    let key = Key {
        app_id,
        export_id,
        subject_id,
    };
    store::insert(tx, key, json!(reference).to_string()).await?;
    let entry = Entry {
        app_id,
        actor,
        action: "person.export_queued",
        resource: format!("export/{export_id}"),
        detail: json!({"person": pseudonyms.subject(app_id, subject_id)}),
    };
    audit::record(tx, &entry, now).await?;
    Ok(export_id)
}

/// Removes the archives of an app whose time is over.
pub async fn remove_expired(
    services: &Services,
    app_id: Uuid,
    now: Timestamp,
) -> nudge_db::Result<()> {
    loop {
        let mut tx = services.db.write().await?;
        let removed = store::remove_expired(&mut tx, app_id, now).await?;
        tx.commit().await?;
        if removed == 0 {
            return Ok(());
        }
    }
}

/// Runs the job to its end. A failure leaves no piece of an archive. Where the person becomes part of another meanwhile, the
/// archive is made anew, of that one.
pub async fn run(services: &Services, job: &mut RunningJob) -> Result<Value, Error> {
    let (app_id, export_id) = (job.app_id, job.id);
    loop {
        remove_chunks(services, job).await?;
        let row = find(services, app_id, export_id).await?;
        let gone = || Error::Failed(GONE.to_owned());
        let subject_id = row.subject_id.ok_or_else(gone)?;
        let key = Key {
            app_id,
            export_id,
            subject_id,
        };
        let outcome = make(services, job, key, row.reference).await;
        if let Err(Error::Failed(_)) = outcome {
            let now = find(services, app_id, export_id).await?.subject_id;
            if now.is_some_and(|now| now != subject_id) {
                continue;
            }
            remove_chunks(services, job).await?;
        }
        return outcome.map(|()| json!({}));
    }
}

async fn find(services: &Services, app_id: Uuid, export_id: Uuid) -> Result<ExportRow, Error> {
    let mut tx = services.db.read().await?;
    let row = store::find(&mut tx, app_id, export_id).await?;
    row.ok_or(Error::Lost)
}

/// Removes the pieces of an archive. If another process has taken the job over, this fails: the pieces are that one's.
async fn remove_chunks(services: &Services, job: &RunningJob) -> Result<(), Error> {
    loop {
        let mut tx = services.db.write().await?;
        if store::remove_chunks(&mut tx, job.app_id, job.id).await? == 0 {
            return Ok(());
        }
        job.hold(&mut tx).await?;
        tx.commit().await?;
    }
}

async fn make(
    services: &Services,
    job: &mut RunningJob,
    key: Key,
    reference: Option<String>,
) -> Result<(), Error> {
    let mut making = Making {
        services,
        job,
        key,
        archive: Some(Box::new(Archive::new())),
        gathered: Vec::new(),
        chunks: 0,
        size_bytes: 0,
        sha256: Sha256::new(),
        files: Vec::new(),
    };
    making.profile().await?;
    making.events().await?;
    making
        .lines("survey-answers.ndjson", List::SurveyAnswers)
        .await?;
    making.lines("deliveries.ndjson", List::Deliveries).await?;
    making.devices().await?;
    making.manifest(reference.as_deref()).await?;
    making.finish().await
}

/// Where records come from.
#[derive(Clone, Copy)]
enum Source<'a> {
    List(List),
    Events(&'a AliasRow),
}

/// How records are written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// As those of a JSON array.
    Elements,
    /// A line each.
    Lines,
}

/// An archive in the making.
struct Making<'a> {
    services: &'a Services,
    job: &'a mut RunningJob,
    key: Key,
    archive: Option<Box<Archive>>,
    gathered: Vec<u8>,
    chunks: i64,
    size_bytes: i64,
    sha256: Sha256,
    files: Vec<Value>,
}

impl Making<'_> {
    /// `profile.json`: what is known of the person, and all lists but the events.
    async fn profile(&mut self) -> Result<(), Error> {
        let mut tx = self.services.db.read().await?;
        let profile = records::profile(&mut tx, self.key).await?;
        drop(tx);
        let profile = profile.ok_or_else(|| Error::Failed(GONE.to_owned()))?;
        self.begin("profile.json").await?;
        self.write(format!("{{\"profile\":{profile}").into_bytes())
            .await?;
        let mut count = 1;
        for (name, list) in List::ALL {
            self.write(format!(",\"{name}\":[").into_bytes()).await?;
            count += self.records(Source::List(*list), Form::Elements).await?;
            self.write(b"]".to_vec()).await?;
        }
        self.write(b"}".to_vec()).await?;
        self.end("profile.json", count);
        Ok(())
    }

    async fn devices(&mut self) -> Result<(), Error> {
        self.begin("devices.json").await?;
        self.write(b"[".to_vec()).await?;
        let devices = Source::List(List::Devices);
        let count = self.records(devices, Form::Elements).await?;
        self.write(b"]".to_vec()).await?;
        self.end("devices.json", count);
        Ok(())
    }

    /// A list in a file of its own, a record a line.
    async fn lines(&mut self, name: &'static str, list: List) -> Result<(), Error> {
        self.begin(name).await?;
        let count = self.records(Source::List(list), Form::Lines).await?;
        self.end(name, count);
        Ok(())
    }

    async fn events(&mut self) -> Result<(), Error> {
        self.begin("events.ndjson").await?;
        let (mut number, mut count) = (0, 0);
        loop {
            let mut tx = self.services.db.read().await?;
            let aliases = records::aliases(&mut tx, self.key, number).await?;
            drop(tx);
            let Some(last) = aliases.last() else { break };
            number = last.number;
            for alias in &aliases {
                count += self.records(Source::Events(alias), Form::Lines).await?;
            }
        }
        self.end("events.ndjson", count);
        Ok(())
    }

    /// Writes all records of a source, page by page; answers how many there are.
    async fn records(&mut self, source: Source<'_>, form: Form) -> Result<i64, Error> {
        let mut after = After::default();
        let mut count = 0;
        loop {
            let (key, mut tx) = (self.key, self.services.db.read().await?);
            let records = match source {
                Source::List(list) => records::records(&mut tx, key, list, &mut after).await?,
                Source::Events(alias) => records::events(&mut tx, key, alias, &mut after).await?,
            };
            drop(tx);
            if records.is_empty() {
                return Ok(count);
            }
            let mut text = String::new();
            for record in records {
                if form == Form::Elements && count > 0 {
                    text.push(',');
                }
                text.push_str(&record);
                if form == Form::Lines {
                    text.push('\n');
                }
                count += 1;
            }
            self.write(text.into_bytes()).await?;
        }
    }

    async fn manifest(&mut self, reference: Option<&str>) -> Result<(), Error> {
        let subject: Option<Value> = reference.and_then(|text| serde_json::from_str(text).ok());
        let manifest = json!({
            "version": 1,
            "exportId": self.key.export_id,
            "appId": self.key.app_id,
            "subject": subject,
            "generatedAt": clock::to_text(self.services.clock.now()),
            "files": self.files,
        });
        self.file("manifest.json", 1, manifest.to_string().into_bytes())
            .await
    }

    async fn file(
        &mut self,
        name: &'static str,
        records: i64,
        bytes: Vec<u8>,
    ) -> Result<(), Error> {
        self.begin(name).await?;
        self.write(bytes).await?;
        self.end(name, records);
        Ok(())
    }

    async fn begin(&mut self, name: &'static str) -> Result<(), Error> {
        self.work(move |archive| archive.begin(name)).await
    }

    fn end(&mut self, name: &str, records: i64) {
        self.files.push(json!({"name": name, "records": records}));
    }

    async fn write(&mut self, bytes: Vec<u8>) -> Result<(), Error> {
        self.work(move |archive| archive.write(&bytes)).await?;
        while self.gathered.len() >= CHUNK {
            let rest = self.gathered.split_off(CHUNK);
            let chunk = std::mem::replace(&mut self.gathered, rest);
            self.keep(chunk).await?;
        }
        Ok(())
    }

    /// Compresses on a thread that may be busy.
    async fn work(
        &mut self,
        work: impl FnOnce(&mut Archive) -> std::io::Result<()> + Send + 'static,
    ) -> Result<(), Error> {
        self.job.check()?;
        let Some(mut archive) = self.archive.take() else {
            return Err(broken("the archive is lost"));
        };
        let worked = tokio::task::spawn_blocking(move || {
            let outcome = work(&mut archive);
            (archive, outcome)
        });
        let (mut archive, outcome) = worked.await.map_err(broken)?;
        outcome.map_err(broken)?;
        self.gathered.append(&mut archive.take());
        self.archive = Some(archive);
        Ok(())
    }

    /// Keeps a piece, if the person is still there.
    async fn keep(&mut self, chunk: Vec<u8>) -> Result<(), Error> {
        Ok(self.piece(chunk).await?.commit().await?)
    }

    /// Writes a piece, in a transaction that is yet to be committed. If another process has taken the job over, this fails.
    async fn piece(&mut self, chunk: Vec<u8>) -> Result<Tx, Error> {
        self.sha256.update(&chunk);
        self.size_bytes += i64::try_from(chunk.len()).unwrap_or(i64::MAX);
        let now = self.services.clock.now();
        let mut tx = self.services.db.write().await?;
        if !store::grow(&mut tx, self.key, self.size_bytes).await? {
            return Err(Error::Failed(GONE.to_owned()));
        }
        store::insert_chunk(&mut tx, self.key, self.chunks, chunk).await?;
        self.chunks += 1;
        self.job
            .advance(&mut tx, &(), self.chunks, None, now)
            .await?;
        Ok(tx)
    }

    async fn finish(mut self) -> Result<(), Error> {
        if let Some(archive) = self.archive.take() {
            self.gathered.append(&mut archive.end().map_err(broken)?);
        }
        let last = std::mem::take(&mut self.gathered);
        let mut tx = self.piece(last).await?;
        let now = self.services.clock.now();
        let sha256 = hexadecimal(&self.sha256.finalize());
        store::complete(&mut tx, self.key, sha256, now.plus(LIFETIME)).await?;
        tx.commit().await?;
        Ok(())
    }
}

fn broken(cause: impl std::fmt::Display) -> Error {
    tracing::error!(error = %cause, "an export failed");
    Error::Failed("the archive could not be written".to_owned())
}
