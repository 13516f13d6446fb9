//! Which devices a delivery goes to, first and again. Pure.

use std::collections::HashMap;

use nudge_campaigns::push::rendered::Rendered;
use nudge_db::Timestamp;
use nudge_records::deliveries::in_hand::ClaimedDelivery;
use nudge_records::deliveries::{Device, DeviceState, Status};

use super::outcome::{EXPIRED, OUTCOME_UNKNOWN};
use super::plan::Step;
use crate::providers::{MOST_PAYLOAD_BYTES, Target, payload_bytes};

/// A delivery that is sent.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub rendered: Rendered,
    pub devices: Vec<Device>,
    /// Where the devices that it is sent to now are found, by their ids.
    pub targets: HashMap<String, Target>,
}

fn devices_of(delivery: &ClaimedDelivery) -> Vec<Device> {
    let devices = delivery.devices.as_deref();
    devices
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default()
}

/// The devices as they are when no more is sent to those that wait.
pub(super) fn given_up(delivery: &ClaimedDelivery, reason: &str) -> Vec<Device> {
    let devices = taken_over(devices_of(delivery)).into_iter();
    let end = |device: Device| match device.state {
        DeviceState::Waiting => Device {
            state: DeviceState::Failed,
            reason: Some(reason.to_owned()),
            due_at: None,
            ..device
        },
        _ => device,
    };
    devices.map(end).collect()
}

/// The devices of a delivery that was claimed: whatever process had them in hand has them no longer.
fn taken_over(devices: Vec<Device>) -> Vec<Device> {
    let in_doubt = |device: Device| match device.state {
        DeviceState::Sending => Device {
            state: DeviceState::Unknown,
            reason: Some(OUTCOME_UNKNOWN.to_owned()),
            ..device
        },
        _ => device,
    };
    devices.into_iter().map(in_doubt).collect()
}

/// What is sent of a delivery whose content is known, and to which of the person's devices.
pub(super) fn outgoing(
    delivery: &ClaimedDelivery,
    rendered: Rendered,
    targets: &[Target],
    now: Timestamp,
) -> Step {
    let message = rendered.message(delivery.id, delivery.created_at, delivery.test);
    let first = delivery.devices.is_none();
    let is_over = match message.expires_at() {
        Some(at) => at <= now,
        None => message.is_for_now() && !first,
    };
    if is_over {
        return if first {
            Step::End(Status::Failed, EXPIRED.to_owned(), None)
        } else {
            // Nothing is handed over, so that it is no attempt.
            Step::Known(given_up(delivery, EXPIRED))
        };
    }
    let known = devices_of(delivery);
    let was_in_hand = known
        .iter()
        .any(|device| device.state == DeviceState::Sending);
    let mut devices = if first {
        targets.iter().map(untried).collect()
    } else {
        taken_over(known)
    };
    let mut found = HashMap::new();
    for device in due(&mut devices, was_in_hand, now) {
        let target = targets
            .iter()
            .find(|target| target.device_id == device.device_id);
        let failed = match target {
            None => Some("device_gone"),
            Some(target) if payload_bytes(target.provider, &message) > MOST_PAYLOAD_BYTES => {
                Some("payload_too_large")
            }
            Some(target) => {
                found.insert(device.device_id.clone(), target.clone());
                None
            }
        };
        if let Some(reason) = failed {
            device.state = DeviceState::Failed;
            device.reason = Some(reason.to_owned());
            device.due_at = None;
        }
    }
    if found.is_empty() {
        return match devices.first() {
            Some(device) if first => {
                let reason = device.reason.clone().unwrap_or_default();
                Step::End(Status::Failed, reason, None)
            }
            _ => Step::Known(devices),
        };
    }
    Step::Send(Box::new(Outgoing {
        rendered,
        devices,
        targets: found,
    }))
}

/// The waiting devices that are sent to now. A delivery is looked at when the first of them is due, or when a process ended that
/// had others in hand. Where neither is so, the clock was set back: all are sent to.
fn due(
    devices: &mut [Device],
    was_in_hand: bool,
    now: Timestamp,
) -> impl Iterator<Item = &mut Device> {
    let is_due = move |device: &Device| device.due_at.is_none_or(|at| at <= now);
    let waits = |device: &Device| device.state == DeviceState::Waiting;
    let some_are = devices.iter().any(|device| waits(device) && is_due(device));
    let waiting = devices.iter_mut().filter(move |device| waits(device));
    waiting.filter(move |device| is_due(device) || !(some_are || was_in_hand))
}

/// A device that nothing was sent to yet.
fn untried(target: &Target) -> Device {
    Device {
        device_id: target.device_id.clone(),
        platform: target.platform,
        provider: target.provider,
        state: DeviceState::Waiting,
        reason: None,
        provider_message_id: None,
        attempts: None,
        due_at: None,
    }
}

#[cfg(test)]
mod tests {
    use nudge_records::deliveries::provider::{Platform, Provider};

    use super::*;

    fn waiting(device_id: &str, due_at: i64) -> Device {
        Device {
            device_id: device_id.to_owned(),
            platform: Platform::Android,
            provider: Provider::Fcm,
            state: DeviceState::Waiting,
            reason: None,
            provider_message_id: None,
            attempts: Some(1),
            due_at: Some(Timestamp(due_at)),
        }
    }

    fn sent_to(devices: &mut [Device], was_in_hand: bool) -> Vec<String> {
        due(devices, was_in_hand, Timestamp(10))
            .map(|device| device.device_id.clone())
            .collect()
    }

    #[test]
    fn a_device_is_sent_to_when_it_is_due() {
        let mut devices = [waiting("phone", 10), waiting("tablet", 11)];
        assert_eq!(sent_to(&mut devices, false), ["phone"]);
    }

    #[test]
    fn all_are_sent_to_after_a_clock_was_set_back() {
        let mut devices = [waiting("phone", 20), waiting("tablet", 30)];
        assert_eq!(sent_to(&mut devices, false), ["phone", "tablet"]);
    }

    #[test]
    fn a_service_is_left_alone_after_the_end_of_a_process() {
        let mut devices = [waiting("phone", 20), waiting("tablet", 30)];
        assert!(sent_to(&mut devices, true).is_empty());
    }
}
