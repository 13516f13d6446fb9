//! Results of a survey (specification 2.4, contract 7): from counts of whole days, which are kept with each answer,
//! and from the attempts of days of which only a part is asked for.

pub mod report;
pub mod store;

use nudge_campaigns::surveys::Survey;
use nudge_campaigns::surveys::flow::{Question, QuestionType};
use nudge_campaigns::{store as campaigns, surveys};
use nudge_db::{Result, Timestamp, Tx};
use uuid::Uuid;

use super::store::DAY;
use super::tally::Tally;
use super::{IDLE, edges};
pub use report::Report;

/// The newest texts that results show of a question (contract 7).
const TEXTS: i64 = 20;
/// Earlier versions that are looked through for questions that the survey no longer has.
const VERSIONS: i64 = 50;

/// When attempts began that are asked for: from an instant on, and before another.
#[derive(Clone, Copy, Debug)]
pub struct Range {
    /// From here on.
    pub from: Timestamp,
    /// Before here.
    pub to: Timestamp,
}

impl Range {
    /// All of time.
    pub const ALL: Self = Self {
        from: Timestamp(i64::MIN),
        to: Timestamp(i64::MAX),
    };

    /// The whole days within, and what is left of the day before and of the day after them.
    fn parts(self) -> ((i64, i64), [Option<Self>; 2]) {
        let first = self.from.0.div_euclid(DAY) + i64::from(self.from.0.rem_euclid(DAY) != 0);
        let last = self.to.0.div_euclid(DAY);
        let unbounded = (self.from == Self::ALL.from, self.to == Self::ALL.to);
        let part = |from: Timestamp, to: Timestamp| (from < to).then_some(Self { from, to });
        if first > last {
            return ((0, 0), [part(self.from, self.to), None]);
        }
        let (begin, end) = (
            Timestamp(first.saturating_mul(DAY)),
            Timestamp(last.saturating_mul(DAY)),
        );
        let before = if unbounded.0 {
            None
        } else {
            part(self.from, begin)
        };
        let after = if unbounded.1 {
            None
        } else {
            part(end, self.to)
        };
        let days = (
            if unbounded.0 { i64::MIN } else { first },
            if unbounded.1 { i64::MAX } else { last },
        );
        (days, [before, after])
    }
}

/// What results are made of.
#[derive(Debug)]
pub struct Facts {
    /// What attempts add up to.
    pub tally: Tally,
    /// Attempts that are neither complete nor abandoned, by the question that they are at.
    pub live: Vec<(Option<String>, i64)>,
    /// Instructions that were shown.
    pub shown: i64,
    /// The survey's questions, and those of earlier versions that were answered.
    pub questions: Vec<Question>,
    /// The newest answers in words, by question.
    pub texts: Vec<(String, Vec<String>)>,
}

/// What attempts add up to, but for those of people who are being deleted.
pub async fn tally(tx: &mut Tx, key: (Uuid, Uuid), range: Range) -> Result<Tally> {
    let ((first, last), rest) = range.parts();
    let mut tally = store::sum(tx, key, first, last).await?;
    for part in rest.into_iter().flatten() {
        tally.merge(&edges::tally(tx, key, (part.from, part.to)).await?);
    }
    let hidden = edges::hidden(tx, key, (range.from, range.to)).await?;
    if hidden.0.is_empty() {
        return Ok(tally);
    }
    Ok(tally.since(&hidden))
}

/// Reads the results of a survey.
pub async fn report(tx: &mut Tx, survey: &Survey, range: Range, now: Timestamp) -> Result<Report> {
    let key = (survey.app_id, survey.id);
    let tally = tally(tx, key, range).await?;
    let live = store::live(tx, key, range, now.minus(IDLE)).await?;
    let shown = store::shown(tx, key, range).await?;
    let questions = questions(tx, survey, &tally).await?;
    let mut texts = Vec::new();
    for question in &questions {
        if matches!(
            question.r#type,
            QuestionType::ShortText | QuestionType::LongText
        ) {
            let newest = store::texts(tx, key, range, &question.id, TEXTS).await?;
            texts.push((question.id.clone(), newest));
        }
    }
    let facts = Facts {
        tally,
        live,
        shown,
        questions,
        texts,
    };
    Ok(report::make(survey.id, &facts))
}

/// The survey's questions in order, and then those of its last versions that were come to and are no longer there.
async fn questions(tx: &mut Tx, survey: &Survey, tally: &Tally) -> Result<Vec<Question>> {
    let flow = survey.content.flow.as_ref();
    let mut questions = flow.map(|flow| flow.questions.clone()).unwrap_or_default();
    let is_missing = |questions: &[Question], id: &str| {
        !id.is_empty() && !questions.iter().any(|question| question.id == id)
    };
    let mut missing: Vec<String> = Vec::new();
    for (id, ..) in tally.0.keys() {
        if is_missing(&questions, id) && missing.last() != Some(id) {
            missing.push(id.clone());
        }
    }
    let mut version = survey.version;
    let oldest = survey.version - VERSIONS;
    while !missing.is_empty() && version > oldest.max(1) {
        version -= 1;
        let content =
            campaigns::version::<surveys::Content>(tx, survey.app_id, survey.id, version).await?;
        let Some(flow) = content.and_then(|content| content.flow) else {
            continue;
        };
        for question in flow.questions {
            if let Some(place) = missing.iter().position(|id| *id == question.id) {
                missing.remove(place);
                questions.push(question);
            }
        }
    }
    Ok(questions)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(from: i64, to: i64) -> ((i64, i64), Vec<(i64, i64)>) {
        let range = Range {
            from: Timestamp(from),
            to: Timestamp(to),
        };
        let (days, rest) = range.parts();
        let rest = rest.into_iter().flatten();
        (days, rest.map(|part| (part.from.0, part.to.0)).collect())
    }

    #[test]
    fn a_range_is_whole_days_and_what_is_left() {
        assert_eq!(parts(0, DAY), ((0, 1), vec![]));
        assert_eq!(
            parts(5, 3 * DAY + 7),
            ((1, 3), vec![(5, DAY), (3 * DAY, 3 * DAY + 7)])
        );
        assert_eq!(parts(5, 7), ((0, 0), vec![(5, 7)]));
        assert_eq!(parts(5, DAY + 7), ((1, 1), vec![(5, DAY), (DAY, DAY + 7)]));
        assert_eq!(parts(7, 7), ((0, 0), vec![]));
        assert_eq!(parts(7, 5), ((0, 0), vec![]));
        let (all, rest) = Range::ALL.parts();
        assert_eq!(all, (i64::MIN, i64::MAX));
        assert_eq!(rest.iter().flatten().count(), 0);
        let open = Range {
            from: Timestamp(5),
            ..Range::ALL
        };
        assert_eq!(open.parts().0, (1, i64::MAX));
        assert_eq!(open.parts().1.iter().flatten().count(), 1);
    }
}
