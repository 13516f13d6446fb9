//! Rate limits (contract 15): token buckets in this process's memory, a bucket for each key, subject,
//! principal, and address whose credentials fail; and for the bytes that each subject and each app sends.
//!
//! A write key is public, so that its bucket is everybody's: of what is in it, and of the app's bytes, one address has a share,
//! which is asked first. What is over that share takes nothing from the others.
//!
//! Processes do not share buckets: behind a balancer a caller has up to as many times the rate.

mod gcra;
mod table;

use std::net::IpAddr;
use strum::IntoStaticStr;

use gcra::{Rate, ceil_seconds};
use nudge_db::Timestamp;
use table::{Owner, Table};
use uuid::Uuid;

use crate::config;

/// What a token of a bucket of bytes stands for: few enough tokens a second that microseconds tell them apart.
const BYTES_A_TOKEN: i64 = 1024;

/// What is limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Policy {
    /// Requests with one key.
    Key,
    /// Of these, of a key that is public, those from one address.
    KeyAddress,
    /// Sessions of one app that begin from one address.
    Sessions,
    /// Requests with subject tokens of one subject.
    Subject,
    /// Requests with access tokens of one principal.
    Principal,
    /// Failed authentication from one address.
    Address,
    /// Bytes of bodies with subject tokens of one subject, decompressed.
    SubjectBytes,
    /// Bytes of bodies with the keys of one app, decompressed.
    AppBytes,
    /// Of these, with a key that is public, those from one address.
    KeyAddressBytes,
}

impl Policy {
    /// The policy's name in `RateLimit-Policy`.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Whether it is bytes that are counted, not requests.
    pub fn counts_bytes(self) -> bool {
        matches!(
            self,
            Self::SubjectBytes | Self::AppBytes | Self::KeyAddressBytes
        )
    }

    /// What one token stands for: a request, or so many bytes.
    fn unit(self) -> i64 {
        if self.counts_bytes() {
            BYTES_A_TOKEN
        } else {
            1
        }
    }
}

/// Where a caller stands with one policy after a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// Which policy.
    pub policy: Policy,
    /// Requests, or bytes, of a full bucket.
    pub burst: i64,
    /// Seconds in which an empty bucket fills.
    pub window_seconds: i64,
    /// Requests, or bytes, that are left now.
    pub remaining: i64,
    /// Seconds until the bucket is full; of an empty one, until the same request may come again.
    pub reset_seconds: i64,
}

/// All limits of this process.
#[derive(Debug)]
pub struct RateLimits {
    /// None: nothing is limited.
    table: Option<Table>,
    key: Rate,
    key_address: Rate,
    sessions: Rate,
    subject: Rate,
    principal: Rate,
    address: Rate,
    subject_bytes: Rate,
    app_bytes: Rate,
    key_address_bytes: Rate,
}

impl RateLimits {
    /// The limits of a configuration. `embedded` decides where that leaves it open.
    pub fn new(config: &config::RateLimits, embedded: bool) -> Self {
        let rate = |bucket: &config::Bucket| Rate::new(bucket.per_second, bucket.burst);
        let bytes = |bucket: &config::Bucket| {
            let tokens = u32::try_from(i64::from(bucket.burst) / BYTES_A_TOKEN);
            Rate::new(bucket.per_second / 1024.0, tokens.unwrap_or(u32::MAX))
        };
        Self {
            table: config.enabled.decide(!embedded).then(Table::default),
            key: rate(&config.key),
            key_address: rate(&config.key_address),
            sessions: rate(&config.sessions),
            subject: rate(&config.subject),
            principal: rate(&config.principal),
            address: rate(&config.address),
            subject_bytes: bytes(&config.subject_bytes),
            app_bytes: bytes(&config.app_bytes),
            key_address_bytes: bytes(&config.key_address_bytes),
        }
    }

    /// Counts a request. `None`: nothing is limited. An error: it is one too many.
    pub fn charge(
        &self,
        policy: Policy,
        owner: [u8; 16],
        now: Timestamp,
    ) -> Option<Result<Quota, Quota>> {
        self.charge_many(policy, owner, 1, now)
    }

    /// Counts the bytes of a body. `None`: nothing is limited. An error: they are too many.
    pub fn charge_bytes(
        &self,
        policy: Policy,
        owner: [u8; 16],
        bytes: usize,
        now: Timestamp,
    ) -> Option<Result<Quota, Quota>> {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        let tokens = bytes.saturating_add(BYTES_A_TOKEN - 1) / BYTES_A_TOKEN;
        self.charge_many(policy, owner, tokens, now)
    }

    fn charge_many(
        &self,
        policy: Policy,
        owner: [u8; 16],
        tokens: i64,
        now: Timestamp,
    ) -> Option<Result<Quota, Quota>> {
        let table = self.table.as_ref()?;
        let rate = self.rate(policy);
        let quota = |remaining: i64, micros| Quota {
            policy,
            burst: rate.burst() * policy.unit(),
            window_seconds: rate.window_seconds(),
            remaining: remaining * policy.unit(),
            reset_seconds: ceil_seconds(micros),
        };
        let outcome = table.take(policy, owner, tokens, rate, now);
        Some(match outcome {
            Ok(taken) => Ok(quota(taken.remaining, taken.full_at.0 - now.0)),
            Err(empty) => Err(quota(0, empty.wait)),
        })
    }

    fn rate(&self, policy: Policy) -> Rate {
        match policy {
            Policy::Key => self.key,
            Policy::KeyAddress => self.key_address,
            Policy::Sessions => self.sessions,
            Policy::Subject => self.subject,
            Policy::Principal => self.principal,
            Policy::Address => self.address,
            Policy::SubjectBytes => self.subject_bytes,
            Policy::AppBytes => self.app_bytes,
            Policy::KeyAddressBytes => self.key_address_bytes,
        }
    }
}

/// The bucket of an address. A network's customers usually have a /64 of IPv6 each, to change addresses in.
pub fn owner_of(address: IpAddr) -> Owner {
    match address.to_canonical() {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => {
            let mut octets = address.octets();
            octets[8..].fill(0);
            octets
        }
    }
}

/// The bucket of an address's share of something. Of two shares with one bucket the ids would have to differ as the addresses
/// do, and ids are random.
pub fn share_of(id: Uuid, address: IpAddr) -> Owner {
    let mut owner = owner_of(address);
    for (byte, mixed) in owner.iter_mut().zip(id.as_bytes()) {
        *byte ^= mixed;
    }
    owner
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_one_network_share_a_bucket() {
        let owner = |text: &str| owner_of(text.parse().unwrap());
        assert_eq!(owner("2001:db8::1"), owner("2001:db8::ffff:2"));
        assert_ne!(owner("2001:db8::1"), owner("2001:db8:0:1::1"));
        assert_eq!(owner("192.0.2.1"), owner("::ffff:192.0.2.1"));
        assert_ne!(owner("192.0.2.1"), owner("192.0.2.2"));
    }
}
