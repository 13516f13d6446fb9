//! The part of an audience that a campaign is for: a stable hash of campaign and subject (contract 8).

use nudge_platform::field_error::FieldError;
use nudge_platform::secrets;
use serde_json::Value;
use uuid::Uuid;

/// What share of subjects a campaign reaches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// 0 to 100.
    percent: f64,
}

impl Default for Sample {
    fn default() -> Self {
        Self { percent: 100.0 }
    }
}

impl Sample {
    /// Reads `samplePercent` of an audience; `place` is the audience's pointer.
    pub fn read(audience: Option<&Value>, place: &str) -> Result<Self, Vec<FieldError>> {
        let Some(percent) = audience.and_then(|audience| audience.get("samplePercent")) else {
            return Ok(Self::default());
        };
        match percent.as_f64() {
            Some(percent) if (0.0..=100.0).contains(&percent) => Ok(Self { percent }),
            _ => Err(vec![FieldError::new(
                format!("{place}/samplePercent"),
                "out_of_range",
                "must be a number from 0 to 100",
            )]),
        }
    }

    /// The share, 0 to 100.
    pub fn percent(self) -> f64 {
        self.percent
    }

    /// Whether a subject is in a campaign's sample. A subject that is in it stays in it when the share grows.
    pub fn includes(self, campaign_id: Uuid, subject_id: Uuid) -> bool {
        if self.percent >= 100.0 {
            return true;
        }
        let hash = secrets::hash(&[b"sample", campaign_id.as_bytes(), subject_id.as_bytes()]);
        let number = hash
            .first_chunk()
            .map_or(0, |bytes| u32::from_be_bytes(*bytes));
        f64::from(number) / (f64::from(u32::MAX) + 1.0) * 100.0 < self.percent
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn sample(percent: f64) -> Sample {
        Sample::read(Some(&json!({"samplePercent": percent})), "").unwrap()
    }

    #[test]
    fn none_and_all_are_exact() {
        for number in 0..1_000 {
            let subject = Uuid::from_u128(number);
            assert!(!sample(0.0).includes(Uuid::nil(), subject));
            assert!(sample(100.0).includes(Uuid::nil(), subject));
        }
    }

    #[test]
    fn the_share_is_about_right_and_differs_between_campaigns() {
        let in_sample = |campaign: u128| -> Vec<u128> {
            let campaign = Uuid::from_u128(campaign);
            let all = 0..10_000;
            all.filter(|subject| sample(30.0).includes(campaign, Uuid::from_u128(*subject)))
                .collect()
        };
        let (first, second) = (in_sample(1), in_sample(2));
        assert!((2_800..3_200).contains(&first.len()), "{}", first.len());
        assert_ne!(first, second);
    }

    proptest! {
        #[test]
        fn a_larger_share_keeps_everybody(campaign: u128, subject: u128, least in 0.0..100.0, more in 0.0..100.0) {
            let (campaign, subject) = (Uuid::from_u128(campaign), Uuid::from_u128(subject));
            let (least, most) = if least < more { (least, more) } else { (more, least) };
            if sample(least).includes(campaign, subject) {
                prop_assert!(sample(most).includes(campaign, subject));
            }
        }
    }
}
