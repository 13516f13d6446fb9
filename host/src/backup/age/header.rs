//! The header of a file: its key, wrapped for each recipient, and a code that authenticates all of it.

use std::io::{self, BufRead, Read as _, Write};

use aws_lc_rs::agreement::{PrivateKey, UnparsedPublicKey, X25519, agree};
use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use scrypt::{Params, scrypt};

use super::{FileKey, Identity, Recipient, cipher, derive, invalid, open, random, seal};

const VERSION: &str = "age-encryption.org/v1";
const X25519_PURPOSE: &[u8] = b"age-encryption.org/v1/X25519";
const SCRYPT_PURPOSE: &[u8] = b"age-encryption.org/v1/scrypt";
/// What a passphrase costs to try: about a second, and 256 MiB.
const WORK: u8 = 18;
/// What a file may ask of whom it is given to, which is 16 times as much.
const MOST_WORK: u8 = 22;
/// A longer header is for more recipients than anybody has.
const LONGEST: u64 = 1 << 16;
/// A file key is wrapped once with a key.
const NONCE: [u8; 12] = [0; 12];

/// One recipient's part of the header.
struct Stanza {
    arguments: Vec<String>,
    body: Vec<u8>,
}

impl Stanza {
    fn for_recipient(recipient: &Recipient, file_key: &FileKey) -> io::Result<Self> {
        let (wrapping, arguments) = match recipient {
            Recipient::X25519(public) => {
                let ephemeral = Identity::generate()?;
                let (Identity::X25519(secret), Recipient::X25519(share)) =
                    (&ephemeral, ephemeral.recipient()?)
                else {
                    return Err(invalid("a key of another kind was made"));
                };
                let key = x25519(secret, public, &share, public)?;
                let share = STANDARD_NO_PAD.encode(share);
                (key, vec!["X25519".to_owned(), share])
            }
            Recipient::Passphrase(passphrase) => {
                let salt: [u8; 16] = random()?;
                let key = stretch(passphrase, &salt, WORK)?;
                let salt = STANDARD_NO_PAD.encode(salt);
                (key, vec!["scrypt".to_owned(), salt, WORK.to_string()])
            }
        };
        let mut body = file_key.to_vec();
        seal(&cipher(&wrapping)?, NONCE, &mut body)?;
        Ok(Self { arguments, body })
    }

    /// The file key, if it is wrapped for an identity.
    fn unwrap(&self, identity: &Identity) -> io::Result<Option<FileKey>> {
        let arguments: Vec<&str> = self.arguments.iter().map(String::as_str).collect();
        let wrapping = match (identity, &*arguments) {
            (Identity::X25519(secret), ["X25519", share]) => {
                let Recipient::X25519(public) = identity.recipient()? else {
                    return Ok(None);
                };
                let share: [u8; 32] = bytes(share)?;
                x25519(secret, &share, &share, &public)?
            }
            (Identity::Passphrase(passphrase), ["scrypt", salt, work]) => {
                let work = work.parse().ok().filter(|work| *work <= MOST_WORK);
                let work = work.ok_or_else(|| invalid("the passphrase takes too much work"))?;
                stretch(passphrase, &bytes::<16>(salt)?, work)?
            }
            _ => return Ok(None),
        };
        let mut body = self.body.clone();
        let opened = open(&cipher(&wrapping)?, NONCE, &mut body);
        Ok(opened.and_then(|()| body.try_into().ok()))
    }

    fn write(&self, text: &mut String) {
        text.push_str("->");
        for argument in &self.arguments {
            text.push(' ');
            text.push_str(argument);
        }
        text.push('\n');
        // Lines of 64 characters; a shorter one, which may be empty, is the last.
        let body = STANDARD_NO_PAD.encode(&self.body);
        let mut rest = body.as_str();
        while let Some((line, after)) = rest.split_at_checked(64) {
            text.push_str(line);
            text.push('\n');
            rest = after;
        }
        text.push_str(rest);
        text.push('\n');
    }
}

fn bytes<const N: usize>(text: &str) -> io::Result<[u8; N]> {
    let decoded = STANDARD_NO_PAD.decode(text).ok();
    decoded
        .and_then(|bytes| bytes.try_into().ok())
        .ok_or_else(|| invalid("the header is damaged"))
}

/// The key that wraps a file key for the owner of an X25519 key.
fn x25519(
    secret: &[u8; 32],
    peer: &[u8; 32],
    share: &[u8; 32],
    recipient: &[u8; 32],
) -> io::Result<[u8; 32]> {
    let secret = PrivateKey::from_private_key(&X25519, secret)
        .map_err(|_| invalid("that is no X25519 key"))?;
    let peer = UnparsedPublicKey::new(&X25519, peer);
    let refused = invalid("the keys do not agree");
    agree(&secret, peer, refused, |shared| {
        derive(&[*share, *recipient].concat(), shared, X25519_PURPOSE)
    })
}

/// The key that wraps a file key by a passphrase (RFC 7914).
fn stretch(passphrase: &str, salt: &[u8; 16], work: u8) -> io::Result<[u8; 32]> {
    let parameters = Params::new(work, 8, 1).map_err(io::Error::other)?;
    let salt = [SCRYPT_PURPOSE, salt].concat();
    let mut key = [0; 32];
    scrypt(passphrase.as_bytes(), &salt, &parameters, &mut key).map_err(io::Error::other)?;
    Ok(key)
}

fn authenticator(file_key: &FileKey) -> io::Result<hmac::Key> {
    let key = derive(&[], file_key, b"header")?;
    Ok(hmac::Key::new(hmac::HMAC_SHA256, &key))
}

pub(super) fn write(
    output: &mut impl Write,
    file_key: &FileKey,
    recipients: &[Recipient],
) -> io::Result<()> {
    let mut text = format!("{VERSION}\n");
    for recipient in recipients {
        Stanza::for_recipient(recipient, file_key)?.write(&mut text);
    }
    text.push_str("---");
    let code = hmac::sign(&authenticator(file_key)?, text.as_bytes());
    writeln!(output, "{text} {}", STANDARD_NO_PAD.encode(code))
}

pub(super) fn read(input: &mut impl BufRead, identities: &[Identity]) -> io::Result<FileKey> {
    let mut lines = Lines {
        input,
        text: String::new(),
    };
    if lines.next()? != VERSION {
        return Err(invalid("the file is not encrypted as age has it"));
    }
    let mut stanzas = Vec::new();
    let code: [u8; 32] = loop {
        let line = lines.next()?;
        if let Some(arguments) = line.strip_prefix("-> ") {
            let arguments = arguments.split(' ').map(str::to_owned).collect();
            let body = lines.body()?;
            stanzas.push(Stanza { arguments, body });
        } else if let Some(code) = line.strip_prefix("--- ") {
            break bytes(code)?;
        } else {
            return Err(invalid("the header is damaged"));
        }
    };
    let file_key = unwrap(&stanzas, identities)?;
    let (authenticated, _) = lines
        .text
        .rsplit_once(' ')
        .ok_or_else(|| invalid("the header is damaged"))?;
    hmac::verify(&authenticator(&file_key)?, authenticated.as_bytes(), &code)
        .map_err(|_| invalid("the header was changed"))?;
    Ok(file_key)
}

fn unwrap(stanzas: &[Stanza], identities: &[Identity]) -> io::Result<FileKey> {
    for stanza in stanzas {
        for identity in identities {
            if let Some(file_key) = stanza.unwrap(identity)? {
                return Ok(file_key);
            }
        }
    }
    Err(invalid(
        "the file is not for this key or passphrase; `head -n 3` of it says which kind it wants",
    ))
}

/// Reads the header line by line, and keeps all of it.
struct Lines<'a, R> {
    input: &'a mut R,
    text: String,
}

impl<R: BufRead> Lines<'_, R> {
    fn next(&mut self) -> io::Result<String> {
        let begin = self.text.len();
        let room = LONGEST.saturating_sub(begin as u64);
        self.input.by_ref().take(room).read_line(&mut self.text)?;
        let line = self.text.get(begin..).unwrap_or_default();
        line.strip_suffix('\n')
            .map(str::to_owned)
            .ok_or_else(|| invalid("the header is damaged"))
    }

    fn body(&mut self) -> io::Result<Vec<u8>> {
        let mut body = String::new();
        loop {
            let line = self.next()?;
            body.push_str(&line);
            if line.len() < 64 {
                break;
            }
        }
        let decoded = STANDARD_NO_PAD.decode(body);
        decoded.map_err(|_| invalid("the header is damaged"))
    }
}
