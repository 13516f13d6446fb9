//! What follows for a delivery from what became of it at its devices. Pure.

use std::time::Duration;

use nudge_campaigns::push::message::Message;
use nudge_db::Timestamp;
use nudge_records::deliveries::provider::Platform;
use nudge_records::deliveries::{Device, DeviceState, Status};

use crate::providers::PushOutcome;

/// How often a provider is asked to take a message, at the most.
pub(super) const MOST_ATTEMPTS: i64 = 6;
/// The pause before the second attempt; before the third it is four times as long, and so on.
const BASE: Duration = Duration::from_secs(5);
/// Why no more is known of a message that was handed over.
pub(super) const OUTCOME_UNKNOWN: &str = "outcome_unknown";
/// Why nothing more is sent of a message whose time is over.
pub(super) const EXPIRED: &str = "expired";
/// The longest pause of those that no provider asks for.
pub(super) const LONGEST: Duration = Duration::from_hours(1);

/// Where a delivery is.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct DeliveryProgress {
    /// The status that it comes into; none: it stays where it is.
    pub status: Option<Status>,
    /// Why.
    pub reason: Option<String>,
    /// Whether it is to be sent again.
    pub waits: bool,
    /// What runs the device that it is known by.
    pub platform: Option<Platform>,
    /// What the provider calls the message there.
    pub provider_message_id: Option<String>,
}

/// What an outcome means for a message: a message that is sent now or never is not tried again.
pub(super) fn in_time(outcome: PushOutcome, message: &Message) -> PushOutcome {
    match outcome {
        PushOutcome::Retry { .. } if message.is_for_now() => PushOutcome::Rejected {
            reason: EXPIRED.to_owned(),
        },
        outcome => outcome,
    }
}

/// A device after so many attempts; answers too how long the provider wants it to wait.
pub(super) fn after(
    device: Device,
    outcome: PushOutcome,
    attempts: i64,
) -> (Device, Option<Duration>) {
    let failed = |reason: &str| (DeviceState::Failed, Some(reason.to_owned()), None, None);
    let (state, reason, id, pause) = match outcome {
        PushOutcome::Accepted {
            provider_message_id,
        } => (DeviceState::Accepted, None, provider_message_id, None),
        PushOutcome::Unregistered { reason } => (DeviceState::Bounced, Some(reason), None, None),
        PushOutcome::Unknown => (
            DeviceState::Unknown,
            Some(OUTCOME_UNKNOWN.to_owned()),
            None,
            None,
        ),
        PushOutcome::Retry { after, reason } if attempts < MOST_ATTEMPTS => {
            (DeviceState::Waiting, Some(reason), None, after)
        }
        PushOutcome::Rejected { reason } | PushOutcome::Retry { reason, .. } => failed(&reason),
        PushOutcome::CredentialInvalid { .. } => failed("credential_invalid"),
        PushOutcome::NoCredential => failed("no_credential"),
    };
    let device = Device {
        state,
        reason,
        provider_message_id: id,
        attempts: Some(attempts),
        due_at: None,
        ..device
    };
    (device, pause)
}

/// When the first of a delivery's waiting devices is due. A device without a time is due at `untimed`.
pub(super) fn first_due(devices: &[Device], untimed: Timestamp) -> Timestamp {
    let waiting = devices
        .iter()
        .filter(|device| device.state == DeviceState::Waiting);
    let due = waiting.map(|device| device.due_at.unwrap_or(untimed));
    due.min().unwrap_or(untimed)
}

/// Where a delivery is: where the furthest of its devices is.
pub(super) fn delivery_progress(devices: &[Device]) -> DeliveryProgress {
    let first = |state: DeviceState| devices.iter().find(|device| device.state == state);
    let waits = first(DeviceState::Waiting).is_some();
    let at = |device: &Device, status| DeliveryProgress {
        status,
        reason: device.reason.clone(),
        waits,
        platform: Some(device.platform),
        provider_message_id: device.provider_message_id.clone(),
    };
    if let Some(device) = first(DeviceState::Accepted) {
        return at(device, Some(Status::Delivered));
    }
    if waits {
        return DeliveryProgress {
            waits,
            ..DeliveryProgress::default()
        };
    }
    if let Some(device) = first(DeviceState::Unknown) {
        // It may be there: it counts as handed over, and nothing more will be heard of it but beacons.
        return at(device, None);
    }
    if let Some(device) = first(DeviceState::Failed) {
        return at(device, Some(Status::Failed));
    }
    first(DeviceState::Bounced).map_or_else(DeliveryProgress::default, |device| {
        at(device, Some(Status::Bounced))
    })
}

/// How long a provider is left alone that asks for a pause: not for longer than the message is worth sending.
pub(super) fn heeded(asked: Duration, message: &Message, now: Timestamp) -> Duration {
    let left = message.expires_at().map(|expires_at| expires_at.since(now));
    left.map_or(asked, |left| asked.min(left))
}

/// How long to wait after so many attempts: longer each time, a fifth more or less by `jitter` (0 to 1), and not
/// less than the provider asks for.
pub(super) fn pause(attempts: i64, asked: Option<Duration>, jitter: f64) -> Duration {
    let number = u32::try_from(attempts.clamp(1, 1_000)).unwrap_or(1);
    let pause = BASE
        .saturating_mul(number * number)
        .mul_f64(0.8 + 0.4 * jitter.clamp(0.0, 1.0));
    pause.min(LONGEST).max(asked.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use nudge_records::deliveries::provider::Provider;

    fn device(state: DeviceState) -> Device {
        Device {
            device_id: "d".to_owned(),
            platform: Platform::Ios,
            provider: Provider::Apns,
            state,
            reason: Some(format!("{state:?}")),
            provider_message_id: None,
            attempts: None,
            due_at: None,
        }
    }

    #[test]
    fn a_delivery_is_where_its_furthest_device_is() {
        use DeviceState::{Accepted, Bounced, Failed, Unknown, Waiting};
        for (states, status, waits) in [
            (vec![Accepted, Failed], Some(Status::Delivered), false),
            (
                vec![Failed, Waiting, Accepted],
                Some(Status::Delivered),
                true,
            ),
            (vec![Waiting, Failed], None, true),
            (vec![Bounced, Unknown], None, false),
            (vec![Bounced, Failed], Some(Status::Failed), false),
            (vec![Bounced, Bounced], Some(Status::Bounced), false),
            (vec![], None, false),
        ] {
            let devices: Vec<Device> = states.iter().map(|state| device(*state)).collect();
            let found = delivery_progress(&devices);
            assert_eq!((found.status, found.waits), (status, waits), "{states:?}");
        }
        assert_eq!(
            delivery_progress(&[device(Failed)]).reason.as_deref(),
            Some("Failed")
        );
    }

    #[test]
    fn what_is_not_taken_after_all_attempts_has_failed() {
        let retry = || PushOutcome::Retry {
            after: None,
            reason: "busy".to_owned(),
        };
        let (kept, _) = after(device(DeviceState::Sending), retry(), MOST_ATTEMPTS - 1);
        assert_eq!(kept.state, DeviceState::Waiting);
        let (given_up, _) = after(device(DeviceState::Sending), retry(), MOST_ATTEMPTS);
        assert_eq!(
            (given_up.state, given_up.reason.as_deref()),
            (DeviceState::Failed, Some("busy"))
        );
    }

    #[test]
    fn a_delivery_is_looked_at_when_its_first_waiting_device_is_due() {
        let due = |state, at: Option<i64>| Device {
            due_at: at.map(Timestamp),
            ..device(state)
        };
        let or = Timestamp(7);
        let (late, soon) = (
            due(DeviceState::Waiting, Some(9)),
            due(DeviceState::Waiting, Some(5)),
        );
        let over = due(DeviceState::Accepted, Some(1));
        assert_eq!(
            first_due(&[late.clone(), soon, over.clone()], or),
            Timestamp(5)
        );
        let untimed = due(DeviceState::Waiting, None);
        assert_eq!(first_due(&[late.clone(), untimed], or), or);
        assert_eq!(first_due(&[late, over], or), Timestamp(9));
    }

    proptest! {
        #[test]
        fn pauses_grow_within_bounds(attempts in 1..20_i64, jitter in 0.0..1.0, asked: Option<u16>) {
            let asked = asked.map(|seconds| Duration::from_secs(seconds.into()));
            let found = pause(attempts, asked, jitter);
            prop_assert!(found <= LONGEST.max(asked.unwrap_or_default()));
            prop_assert!(found >= asked.unwrap_or_default());
            prop_assert!(pause(attempts + 1, asked, 1.0) >= pause(attempts, asked, 0.0));
        }
    }
}
