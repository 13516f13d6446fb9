//! Which devices a delivery goes to, first and again. Pure.

use std::collections::HashMap;

use nudge_campaigns::push::rendered::Rendered;
use nudge_db::Timestamp;
use nudge_records::deliveries::in_hand::ClaimedDelivery;
use nudge_records::deliveries::{Device, DeviceState, Status};

use super::outcome::OUTCOME_UNKNOWN;
use super::plan::Step;
use crate::providers::{MOST_PAYLOAD_BYTES, Target, payload_bytes};

/// A delivery that is sent.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub rendered: Rendered,
    pub devices: Vec<Device>,
    /// Where the devices that wait are found, by their ids.
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
    if message.expires_at().is_some_and(|at| at <= now) {
        let reason = "expired";
        return if first {
            Step::End(Status::Failed, reason.to_owned(), None)
        } else {
            // Nothing is handed over, so that it is no attempt.
            Step::Known(given_up(delivery, reason))
        };
    }
    let mut devices = if first {
        targets.iter().map(untried).collect()
    } else {
        taken_over(devices_of(delivery))
    };
    let mut found = HashMap::new();
    for device in &mut devices {
        if device.state != DeviceState::Waiting {
            continue;
        }
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

/// A device that nothing was sent to yet.
fn untried(target: &Target) -> Device {
    Device {
        device_id: target.device_id.clone(),
        platform: target.platform,
        provider: target.provider,
        state: DeviceState::Waiting,
        reason: None,
        provider_message_id: None,
    }
}
