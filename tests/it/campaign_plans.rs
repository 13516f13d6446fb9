//! What campaigns ask of a database is found by indexes, whatever number of people, answers and messages there is.

use nudge_campaigns::campaign::Kind;
use nudge_campaigns::runs;
use nudge_db::{Rows, Timestamp, Tx};
use nudge_pipeline::audience::{self, CountedAsOf, PresentationQuestion, interactions};
use nudge_pipeline::history::LatestQuestion;
use nudge_pipeline::{explain, history};
use nudge_platform::claims;
use nudge_records::events::store::find_by_id;
use nudge_records::instructions::recipients;
use nudge_records::scheduled_work;
use nudge_surveys::attempts::analytics::{self, Range};
use nudge_surveys::attempts::store::Whose;
use nudge_surveys::attempts::{self, responses};
use serde_json::json;
use tests::session::event_id;
use tests::{Session, TestApp, on_both_backends};
use uuid::Uuid;

use crate::attempts::{forked, link_survey};
use crate::plans::{check, check_plan, check_rows, check_scans, fill};

on_both_backends!(
    results_and_their_lists_are_found_by_indexes,
    a_page_of_who_got_a_message_reads_its_own_rows,
    what_firings_depend_on_is_found_by_indexes,
    runs_and_occasions_are_found_by_indexes,
    a_plugins_questions_about_the_past_are_found_by_indexes,
    of_several_aliases_the_newest_events_are_the_newest,
    the_latest_events_of_many_are_those_of_each,
    of_events_of_one_instant_the_last_is_the_newest,
);

/// Makes instructions, attempts, answers, messages, timers and occasions of 10,000 people, a fourth of them of the
/// survey. Every row of a person has the person's id.
async fn filled(app: &TestApp) -> (Uuid, i64) {
    let survey = link_survey(app, forked(false)).await;
    let alias = fill(app).await;
    let (app_id, now) = (app.access.app_id, app.clock.now());
    let mut tx = app.services().db.write().await.unwrap();
    for text in [
        "INSERT INTO instructions (id, app_id, subject_id, position, kind, campaign_id, campaign_version, priority,
                                   created_at, available_at, expires_at, status, status_at, plugin_name, plugin_version,
                                   counted_at)
         SELECT s.id, s.app_id, s.id, 1, 'survey', CASE WHEN s.app_id = $1 THEN $2 ELSE s.app_id END, 1, 0,
                $3, $3, $3, 'issued', $3, 'p', '1.0.0', $3 FROM subjects s",
        "INSERT INTO survey_attempts (id, app_id, survey_id, survey_version, subject_id, state, started_at, active_at)
         SELECT s.id, s.app_id, CASE WHEN s.app_id = $1 THEN $2 ELSE s.app_id END, 1, s.id, 'started', $3, $3
         FROM subjects s",
        "INSERT INTO survey_answers (attempt_id, question_id, app_id, survey_id, value, counted, started_at, answered_at)
         SELECT s.id, 'q1', s.app_id, CASE WHEN s.app_id = $1 THEN $2 ELSE s.app_id END, '7', TRUE, $3, $3
         FROM subjects s",
        "INSERT INTO survey_counts (survey_id, day, question_id, measure, value, app_id, count, total)
         SELECT CASE WHEN s.app_id = $1 THEN $2 ELSE s.app_id END, s.last_seen_at + a.number + $3 - $3, '', 'started', '',
                s.app_id, 1, 0.0
         FROM subjects s JOIN aliases a ON a.subject_id = s.id",
        "INSERT INTO deliveries (id, app_id, campaign_id, campaign_version, variant_id, subject_id, test, recipients,
                                 status, attempts, lane, created_at)
         SELECT s.id, s.app_id, CASE WHEN s.app_id = $1 THEN $2 ELSE s.app_id END, 1, s.id, s.id, FALSE, 1, 'sent', 1,
                1, $3 FROM subjects s",
        "INSERT INTO timers (id, app_id, campaign_id, subject_id, key, due_at, payload, event_seq)
         SELECT s.id, s.app_id, CASE WHEN s.app_id = $1 THEN $2 ELSE s.app_id END, s.id, 'k', $3 + 9000000000000000 - $3,
                k.hash, 1 FROM subjects s CROSS JOIN (SELECT hash FROM keys LIMIT 1) k",
        "INSERT INTO occasions (id, app_id, campaign_id, subject_id, alias_number, key, due_at, event_seq)
         SELECT s.id, s.app_id, CASE WHEN s.app_id = $1 THEN $2 ELSE s.app_id END, s.id, 1, 'k',
                $3 + 9000000000000000 - $3 + a.number, 1 FROM subjects s JOIN aliases a ON a.subject_id = s.id",
        "INSERT INTO run_firings (campaign_id, subject_id, key, app_id, event_seq)
         SELECT CASE WHEN s.app_id = $1 THEN $2 ELSE s.app_id END, s.id, 'run 2026', s.app_id, $3 FROM subjects s",
    ] {
        let statement = tx.sql(text).bind(app_id).bind(survey).bind(now);
        statement.execute().await.unwrap();
    }
    tx.sql(
        "INSERT INTO audit_log (id, app_id, at, actor, action, resource, detail)
         SELECT s.id, s.app_id, $1, 'server', 'person.properties_updated', 'person/' || a.number, '{}'
         FROM subjects s JOIN aliases a ON a.subject_id = s.id",
    )
    .bind(now)
    .execute()
    .await
    .unwrap();
    tx.sql("ANALYZE").execute().await.unwrap();
    tx.commit().await.unwrap();
    (survey, alias)
}

/// Takes away what the pipeline is not to find when the test is over.
async fn emptied(app: &TestApp) {
    let mut tx = app.services().db.write().await.unwrap();
    for text in ["DELETE FROM timers", "DELETE FROM occasions"] {
        tx.sql(text).execute().await.unwrap();
    }
    tx.commit().await.unwrap();
}

async fn reading(app: &TestApp) -> Tx {
    let mut tx = app.services().db.read().await.unwrap();
    tx.explain();
    tx
}

async fn results_and_their_lists_are_found_by_indexes(app: &mut TestApp) {
    let (survey_id, _) = filled(app).await;
    let (app_id, now) = (app.access.app_id, app.clock.now());
    let key = (app_id, survey_id);
    let mut tx = app.services().db.read().await.unwrap();
    let survey = nudge_campaigns::store::find(&mut tx, app_id, survey_id).await;
    let survey = survey.unwrap().unwrap();
    tx.explain();
    let within = Range {
        from: now.minus(std::time::Duration::from_mins(1)),
        to: Timestamp(now.0 + 1),
    };
    for range in [Range::ALL, within] {
        // It ends at the first count, which finds no row, as nothing does here.
        analytics::report(&mut tx, &survey, range, now)
            .await
            .unwrap_err();
        check_scans(&tx.plans(), "results");
        responses::page(&mut tx, key, range, 100, 50).await.unwrap();
        check_scans(&tx.plans(), "a page of responses");
        responses::count(&mut tx, key, range).await.unwrap_err();
        check_scans(&tx.plans(), "how many responses there are");
        let bounds = (range.from, range.to);
        for after in [None, Some((now, app.id()))] {
            for whose in [Whose::Everybody, Whose::Shown, Whose::Hidden] {
                attempts::store::list(&mut tx, key, bounds, after, 50, whose)
                    .await
                    .unwrap();
                check_scans(&tx.plans(), "a page of attempts");
            }
        }
    }
    attempts::store::answers(&mut tx, app_id, &[app.id()])
        .await
        .unwrap();
    check_scans(&tx.plans(), "the answers of attempts");
    attempts::store::completed(&mut tx, app_id, survey_id)
        .await
        .unwrap_err();
    check_scans(&tx.plans(), "how many attempts are complete");
    recipients::page(&mut tx, Kind::Survey, key, None, Some(app.id()), 50, now)
        .await
        .unwrap();
    // What is joined to a page may be read from end to end while it is small.
    let plan = tx.plans().join("\n");
    for index in ["instructions_of_campaign", "survey_attempts_on_their_own"] {
        assert!(plan.contains(index), "a page of recipients: {plan}");
    }
    recipients::names(&mut tx, app_id, &[app.id()])
        .await
        .unwrap();
    check_scans(&tx.plans(), "the names of recipients");
    drop(tx);
    emptied(app).await;
}

/// In the order of their ids, all messages of a campaign would be sorted for each page.
async fn a_page_of_who_got_a_message_reads_its_own_rows(app: &mut TestApp) {
    let (campaign_id, _) = filled(app).await;
    let (key, now) = ((app.access.app_id, campaign_id), app.clock.now());
    let mut tx = reading(app).await;
    for after in [None, Some(app.id())] {
        recipients::page(&mut tx, Kind::Push, key, None, after, 50, now)
            .await
            .unwrap();
        let plan = tx.plans();
        let is_in_order = |line: &String| line.contains("deliveries_of_campaign");
        assert!(plan.iter().any(is_in_order), "{plan:#?}");
        let is_sorted = |line: &String| line.contains("TEMP B-TREE FOR ORDER BY");
        assert!(!plan.iter().any(is_sorted), "{plan:#?}");
    }
    drop(tx);
    emptied(app).await;
}

async fn what_firings_depend_on_is_found_by_indexes(app: &mut TestApp) {
    let (survey_id, alias) = filled(app).await;
    let (app_id, now) = (app.access.app_id, app.clock.now());
    let mut tx = app.services().db.read().await.unwrap();
    let event_id = newest(&mut tx, alias).await;
    let stored = find_by_id(&mut tx, app_id, alias, event_id).await;
    let stored = stored.unwrap().unwrap();
    tx.explain();
    for (kind, campaign_id) in [
        (None, None),
        (Some(Kind::Survey), None),
        (Some(Kind::Survey), Some(survey_id)),
        (Some(Kind::Push), None),
        (Some(Kind::Push), Some(survey_id)),
    ] {
        let question = PresentationQuestion {
            subject_id: app.id(),
            kind,
            campaign_id,
            since: Timestamp(0),
        };
        audience::counts(&mut tx, app_id, &[question], CountedAsOf::now(now))
            .await
            .unwrap();
        check_scans(&tx.plans(), "what caps count");
    }
    for kind in [Kind::Survey, Kind::Push] {
        interactions::of_subjects(&mut tx, &[app.id()], kind, now)
            .await
            .unwrap();
        check_scans(&tx.plans(), "interactions");
    }
    history::aliases(&mut tx, app_id, app.id()).await.unwrap();
    check_scans(&tx.plans(), "the aliases of a person");
    explain::store::trace(&mut tx, app_id, app.id(), survey_id, &stored)
        .await
        .unwrap();
    check_scans(&tx.plans(), "what came of an event");
    let resource = format!("survey/{survey_id}");
    explain::store::last_change(&mut tx, app_id, &resource, now)
        .await
        .unwrap();
    let plan = tx.plans();
    let is_of_resource = |line: &String| line.contains("audit_of_resource");
    assert!(plan.iter().any(is_of_resource), "{plan:#?}");
    check_plan(&plan, tx.dialect(), "the last change of a campaign");
    drop(tx);
    emptied(app).await;
}

async fn newest(tx: &mut Tx, alias: i64) -> Uuid {
    let rows: Vec<(Uuid,)> = tx
        .sql("SELECT event_id FROM events WHERE alias_number = $1 ORDER BY timestamp DESC LIMIT 1")
        .bind(alias)
        .fetch_all()
        .await
        .unwrap();
    rows[0].0
}

async fn runs_and_occasions_are_found_by_indexes(app: &mut TestApp) {
    let (survey_id, _) = filled(app).await;
    let (app_id, now) = (app.access.app_id, app.clock.now());
    let planned = runs::store::Planned {
        campaign_id: survey_id,
        app_id,
        kind: Kind::Survey,
        plan: None,
        next: None,
        last_at: None,
        job_id: None,
    };
    let mut tx = reading(app).await;
    nudge_pipeline::runs::store::due(&mut tx, now, 100)
        .await
        .unwrap();
    nudge_pipeline::runs::store::to_look_at(&mut tx, now, now, 100)
        .await
        .unwrap();
    check_scans(&tx.plans(), "runs that are due");
    nudge_pipeline::runs::store::count_due(&mut tx, app_id, survey_id, now, 1_000)
        .await
        .unwrap_err();
    check_scans(&tx.plans(), "how many occasions are due");
    nudge_pipeline::runs::store::waiting(&mut tx, app_id, survey_id)
        .await
        .unwrap();
    check_scans(&tx.plans(), "who waits");
    nudge_pipeline::runs::store::any_on_offer(&mut tx, app_id, survey_id, now)
        .await
        .unwrap();
    check_scans(&tx.plans(), "what is on offer");
    nudge_pipeline::runs::store::newest_subject(&mut tx, app_id)
        .await
        .unwrap();
    check_scans(&tx.plans(), "the newest person");
    nudge_pipeline::runs::store::people(&mut tx, app_id, Uuid::nil(), Uuid::max(), 500)
        .await
        .unwrap();
    check_scans(&tx.plans(), "a page of people");
    scheduled_work::any_waits(&mut tx, now).await.unwrap();
    check_scans(&tx.plans(), "whether an occasion is due");
    scheduled_work::claimed_by(&mut tx, app.id(), 100)
        .await
        .unwrap();
    check_scans(&tx.plans(), "claimed occasions");
    drop(tx);
    let mut tx = app.services().db.write().await.unwrap();
    tx.explain();
    scheduled_work::claim(&mut tx, app.id(), now, 100)
        .await
        .unwrap();
    check_scans(&tx.plans(), "claiming occasions");
    let ids: Vec<Uuid> = (0..3).map(|_| app.id()).collect();
    for table in ["timers", "occasions"] {
        claims::release(&mut tx, table, &ids, app.id())
            .await
            .unwrap();
        let plan = tx.plans();
        check_rows(&plan, "claims that are given up");
        check_scans(&plan, "claims that are given up");
    }
    nudge_pipeline::runs::store::resume(&mut tx, &planned, now)
        .await
        .unwrap();
    check_scans(&tx.plans(), "occasions that a campaign goes on with");
    nudge_pipeline::runs::store::drop_left(&mut tx, &planned)
        .await
        .unwrap();
    check_search(&tx.plans(), "occasions_of_campaign");
    nudge_pipeline::runs::store::forget_firings(&mut tx, &planned, "run 9999")
        .await
        .unwrap();
    check_search(&tx.plans(), "run_firings_pkey");
    tx.rollback().await.unwrap();
    emptied(app).await;
}

/// Of what removes hundreds of rows at a time: they are found by an index. Of the few rows of a test, PostgreSQL rather
/// reads all once it knows which.
fn check_search(plan: &[String], index: &str) {
    let search = format!("Index Scan using {index}");
    if !plan.iter().any(|line| line.contains(&search)) {
        check_scans(plan, index);
    }
}

async fn a_plugins_questions_about_the_past_are_found_by_indexes(app: &mut TestApp) {
    let (_, alias) = filled(app).await;
    let app_id = app.access.app_id;
    let mut tx = reading(app).await;
    history::aliases(&mut tx, app_id, app.id()).await.unwrap();
    check_scans(&tx.plans(), "the aliases of a person");
    history::newest_events(&mut tx, app_id, alias, "opened", i64::MAX, 32)
        .await
        .unwrap();
    check(&mut tx, "the newest events");
    let question = |alias| LatestQuestion {
        alias,
        name: "opened".to_owned(),
        since: 5,
        last_seq: i64::MAX,
    };
    let questions = [alias, alias + 1, alias + 2].map(question);
    history::latest_of_many(&mut tx, app_id, &questions)
        .await
        .unwrap();
    let plan = tx.plans();
    check_rows(&plan, "the latest events");
    check_plan(&plan, tx.dialect(), "the latest events");
    for aliases in [vec![alias], vec![alias, alias + 1, alias + 2]] {
        history::recent_events(&mut tx, app_id, &aliases, "opened", Some(5), i64::MAX, 200)
            .await
            .unwrap();
        check(&mut tx, "events of a name");
        history::count_events(&mut tx, app_id, &aliases, "opened", Some(5), i64::MAX, 200)
            .await
            .unwrap_err();
        check_scans(&tx.plans(), "how many events there are of a name");
    }
    drop(tx);
    emptied(app).await;
}

async fn of_several_aliases_the_newest_events_are_the_newest(app: &mut TestApp) {
    fill(app).await;
    let app_id = app.access.app_id;
    let all: Vec<(i64, i64, i64)> = app
        .rows("SELECT alias_number, seq, timestamp FROM events WHERE name = 'opened' ORDER BY timestamp DESC")
        .await;
    let mut known: Vec<i64> = all.iter().map(|(alias, ..)| *alias).collect();
    known.sort_unstable();
    known.dedup();
    let oldest = all[all.len() / 2].2;
    let mut tx = app.services().db.read().await.unwrap();
    // In either order: what is known already says how far back to look.
    for aliases in [
        known[..3].to_vec(),
        known[..3].iter().rev().copied().collect(),
        known,
    ] {
        for (limit, since) in [(1, None), (101, None), (1_000, None), (1_000, Some(oldest))] {
            let found =
                history::recent_events(&mut tx, app_id, &aliases, "opened", since, i64::MAX, limit);
            let found = found.await.unwrap().into_iter();
            let found: Vec<i64> = found.map(|(seq, _)| seq).collect();
            let expected = all.iter().filter(|(alias, _, at)| {
                aliases.contains(alias) && since.is_none_or(|since| *at >= since)
            });
            let expected = expected.take(usize::try_from(limit).unwrap());
            let expected: Vec<i64> = expected.map(|(_, seq, _)| *seq).collect();
            assert_eq!(found, expected, "{limit} {since:?}");
        }
    }
}

/// An answer about many is what each would be told alone.
async fn the_latest_events_of_many_are_those_of_each(app: &mut TestApp) {
    fill(app).await;
    let app_id = app.access.app_id;
    let all: Vec<(i64, i64, i64)> = app
        .rows("SELECT alias_number, seq, timestamp FROM events WHERE name = 'opened' ORDER BY timestamp")
        .await;
    let middle = all[all.len() / 2];
    let mut aliases: Vec<i64> = all.iter().map(|(alias, ..)| *alias).collect();
    aliases.sort_unstable();
    aliases.dedup();
    // Nobody has that one.
    aliases.push(i64::MAX);
    let mut questions = Vec::new();
    for alias in aliases.iter().cycle().take(Rows::MOST / 4) {
        for (name, since, last_seq) in [
            ("opened", 0, i64::MAX),
            ("searched", 0, i64::MAX),
            ("closed", 0, i64::MAX),
            ("opened", middle.2, i64::MAX),
            ("opened", 0, middle.1),
        ] {
            questions.push(LatestQuestion {
                alias: *alias,
                name: name.to_owned(),
                since,
                last_seq,
            });
        }
    }
    let mut tx = app.services().db.read().await.unwrap();
    let latest = history::latest_of_many(&mut tx, app_id, &questions)
        .await
        .unwrap();
    assert_eq!(latest.len(), questions.len());
    assert!(latest.iter().any(Option::is_none) && latest.iter().any(Option::is_some));
    for (of, latest) in questions.iter().zip(latest) {
        let (aliases, since) = ([of.alias], Some(of.since));
        let alone =
            history::recent_events(&mut tx, app_id, &aliases, &of.name, since, of.last_seq, 1);
        let alone = alone.await.unwrap().pop();
        assert_eq!(latest, alone.map(|(_, event)| event), "{of:?}");
    }
}

async fn of_events_of_one_instant_the_last_is_the_newest(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let sent = of_one_instant(app, &ada, "viewed").await;
    let aliases: Vec<(i64,)> = app.rows("SELECT number FROM aliases").await;
    let (app_id, aliases) = (app.access.app_id, [aliases[0].0]);
    let mut tx = app.services().db.read().await.unwrap();
    for (limit, expected) in [(1, &sent[2..]), (2, &sent[1..]), (3, &sent[..])] {
        let newest =
            history::recent_events(&mut tx, app_id, &aliases, "viewed", None, i64::MAX, limit);
        let newest = newest.await.unwrap().into_iter();
        let mut found: Vec<Uuid> = newest.map(|(_, event)| event.id).collect();
        found.reverse();
        assert_eq!(found, expected, "{limit}");
    }
}

/// Sends three events of one instant, one after another; answers their ids. PostgreSQL has the first one behind the others.
pub(crate) async fn of_one_instant(app: &TestApp, session: &Session, name: &str) -> Vec<Uuid> {
    let at = app.time(0);
    let mut sent: Vec<Uuid> = Vec::new();
    for number in 0..3 {
        let mut event = app.event(session, name, &json!({"number": number}));
        event["timestamp"] = json!(at);
        sent.push(event_id(&event).parse().unwrap());
        app.ingest(session, &[event]).await.ok();
    }
    app.settle().await;
    let mut tx = app.services().db.write().await.unwrap();
    // An index has that column, so that the row gets a new place in all indexes.
    let moved = tx
        .sql("UPDATE events SET received_at = received_at + 1 WHERE event_id = $1")
        .bind(sent[0]);
    assert_eq!(moved.execute().await.unwrap(), 1);
    tx.commit().await.unwrap();
    sent
}
