//! Whom a file is for, and who opens it.

use std::fmt::{self, Display, Formatter};
use std::io;
use std::str::FromStr;

use aws_lc_rs::agreement::{PrivateKey, X25519};
use bech32::primitives::decode::CheckedHrpstring;
use bech32::{Bech32, Hrp};

use super::{invalid, random};

const PUBLIC: &str = "age";
const SECRET: &str = "age-secret-key-";

/// Whom a file is for.
#[derive(Clone)]
pub enum Recipient {
    /// The owner of the secret key to an X25519 public key.
    X25519([u8; 32]),
    /// Everybody who knows a passphrase. Such a file has one recipient.
    Passphrase(String),
}

/// Who opens a file.
#[derive(Clone)]
pub enum Identity {
    /// An X25519 secret key.
    X25519([u8; 32]),
    /// A passphrase.
    Passphrase(String),
}

impl fmt::Debug for Recipient {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str("Recipient(***)")
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str("Identity(***)")
    }
}

impl FromStr for Recipient {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let key = decode(PUBLIC, text);
        key.map(Self::X25519)
            .ok_or("a recipient is an age public key, `age1…`, as `age-keygen` prints it")
    }
}

impl Display for Recipient {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::X25519(key) => {
                let text = encode(PUBLIC, key).map_err(|_| fmt::Error)?;
                formatter.write_str(&text)
            }
            Self::Passphrase(_) => formatter.write_str("a passphrase"),
        }
    }
}

impl Identity {
    /// A new secret key.
    pub fn generate() -> io::Result<Self> {
        Ok(Self::X25519(random()?))
    }

    /// The secret keys of a file as `age-keygen` writes it: one a line, beside comments.
    pub fn parse_file(text: &str) -> io::Result<Vec<Self>> {
        let lines = text.lines().map(str::trim);
        let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        let keys: Option<Vec<Self>> = lines
            .map(|line| decode(SECRET, line).map(Self::X25519))
            .collect();
        keys.filter(|keys| !keys.is_empty())
            .ok_or_else(|| invalid("the file has no age secret key, `AGE-SECRET-KEY-1…`"))
    }

    /// The secret key as `age-keygen` writes it.
    pub fn secret(&self) -> io::Result<String> {
        match self {
            Self::X25519(key) => Ok(encode(SECRET, key)?.to_uppercase()),
            Self::Passphrase(_) => Err(invalid("a passphrase is no key")),
        }
    }

    /// Who has this identity.
    pub fn recipient(&self) -> io::Result<Recipient> {
        match self {
            Self::X25519(key) => {
                let key = PrivateKey::from_private_key(&X25519, key)
                    .map_err(|_| invalid("that is no X25519 key"))?;
                let public = key
                    .compute_public_key()
                    .map_err(|_| invalid("that is no X25519 key"))?;
                let public = public.as_ref().try_into().map_err(io::Error::other)?;
                Ok(Recipient::X25519(public))
            }
            Self::Passphrase(passphrase) => Ok(Recipient::Passphrase(passphrase.clone())),
        }
    }
}

fn encode(prefix: &'static str, key: &[u8; 32]) -> io::Result<String> {
    let prefix = Hrp::parse(prefix).map_err(io::Error::other)?;
    bech32::encode::<Bech32>(prefix, key).map_err(io::Error::other)
}

fn decode(prefix: &str, text: &str) -> Option<[u8; 32]> {
    let checked = CheckedHrpstring::new::<Bech32>(text).ok()?;
    let is_ours = checked.hrp().to_lowercase() == prefix;
    let bytes: Vec<u8> = checked.byte_iter().collect();
    bytes.try_into().ok().filter(|_| is_ours)
}
