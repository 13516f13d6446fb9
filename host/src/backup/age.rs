//! Encryption of files as age has it (<https://age-encryption.org/v1>), so that `age` and its kin open what is made here, and the
//! other way round: for X25519 recipients or by a passphrase. The library `age` does more and takes 75 further crates.

mod header;
mod keys;
mod payload;

pub use keys::{Identity, Recipient};
pub use payload::{Opened, Sealed};

use std::io::{self, BufRead, ErrorKind, Write};

use aws_lc_rs::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::hkdf::{HKDF_SHA256, KeyType, Salt};

/// What encrypts a file: each recipient has it, wrapped.
type FileKey = [u8; 16];

/// The length of what HKDF makes.
struct Length(usize);

impl KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

/// HKDF with SHA-256 (RFC 5869).
fn derive(salt: &[u8], secret: &[u8], purpose: &[u8]) -> io::Result<[u8; 32]> {
    let mut key = [0; 32];
    Salt::new(HKDF_SHA256, salt)
        .extract(secret)
        .expand(&[purpose], Length(key.len()))
        .and_then(|derived| derived.fill(&mut key))
        .map_err(|_| io::Error::other("a key can't be derived"))?;
    Ok(key)
}

/// ChaCha20-Poly1305 (RFC 8439) with a key.
fn cipher(key: &[u8; 32]) -> io::Result<LessSafeKey> {
    let key = UnboundKey::new(&CHACHA20_POLY1305, key);
    let key = key.map_err(|_| io::Error::other("a cipher can't be set up"))?;
    Ok(LessSafeKey::new(key))
}

/// Encrypts in place and appends the tag.
fn seal(cipher: &LessSafeKey, nonce: [u8; 12], bytes: &mut Vec<u8>) -> io::Result<()> {
    let nonce = Nonce::assume_unique_for_key(nonce);
    let sealed = cipher.seal_in_place_append_tag(nonce, Aad::empty(), bytes);
    sealed.map_err(|_| io::Error::other("encryption failed"))
}

/// Decrypts in place and removes the tag. None: the key is another, or the bytes were changed.
fn open(cipher: &LessSafeKey, nonce: [u8; 12], bytes: &mut Vec<u8>) -> Option<()> {
    let nonce = Nonce::assume_unique_for_key(nonce);
    let length = cipher.open_in_place(nonce, Aad::empty(), bytes).ok()?.len();
    bytes.truncate(length);
    Some(())
}

fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    aws_lc_rs::rand::fill(&mut bytes).map_err(|_| io::Error::other("there is no randomness"))?;
    Ok(bytes)
}

fn invalid(detail: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, detail)
}

/// Begins a file that each of some recipients can open. What is written is encrypted; [`Sealed::finish`] ends it.
pub fn encrypt<W: Write>(mut output: W, recipients: &[Recipient]) -> io::Result<Sealed<W>> {
    let file_key: FileKey = random()?;
    header::write(&mut output, &file_key, recipients)?;
    let nonce: [u8; 16] = random()?;
    output.write_all(&nonce)?;
    Sealed::new(output, &derive(&nonce, &file_key, b"payload")?)
}

/// Opens a file. What is read was not changed since it was written; an error says when it was, or ends too early.
pub fn decrypt<R: BufRead>(mut input: R, identities: &[Identity]) -> io::Result<Opened<R>> {
    let file_key = header::read(&mut input, identities)?;
    let mut nonce = [0; 16];
    input.read_exact(&mut nonce)?;
    Opened::new(input, &derive(&nonce, &file_key, b"payload")?)
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    fn sealed(recipient: &Recipient, text: &[u8]) -> Vec<u8> {
        let mut writer = encrypt(Vec::new(), std::slice::from_ref(recipient)).unwrap();
        writer.write_all(text).unwrap();
        writer.finish().unwrap()
    }

    fn opened(identity: &Identity, file: &[u8]) -> io::Result<Vec<u8>> {
        let mut text = Vec::new();
        decrypt(file, std::slice::from_ref(identity))?.read_to_end(&mut text)?;
        Ok(text)
    }

    #[test]
    fn what_is_sealed_opens_at_every_length_around_a_chunk() {
        let identity = Identity::generate().unwrap();
        let recipient = identity.recipient().unwrap();
        for length in [0, 1, 65_535, 65_536, 65_537, 131_072, 200_000] {
            let text = vec![7; length];
            let file = sealed(&recipient, &text);
            assert_eq!(opened(&identity, &file).unwrap(), text, "{length}");
        }
    }

    #[test]
    fn another_key_another_passphrase_and_a_changed_file_open_nothing() {
        let identity = Identity::generate().unwrap();
        let file = sealed(&identity.recipient().unwrap(), &vec![1; 70_000]);
        let other = Identity::generate().unwrap();
        assert!(opened(&other, &file).is_err());
        for place in [30, 60, 150, 250, 65_700, file.len() - 1] {
            let mut changed = file.clone();
            changed[place] ^= 1;
            assert!(opened(&identity, &changed).is_err(), "{place}");
        }
        for length in [20, 100, 230, 65_784, file.len() - 1] {
            assert!(opened(&identity, &file[..length]).is_err(), "{length}");
        }
        let file = sealed(&Recipient::Passphrase("right".to_owned()), b"text");
        assert!(opened(&Identity::Passphrase("wrong".to_owned()), &file).is_err());
        assert_eq!(
            opened(&Identity::Passphrase("right".to_owned()), &file).unwrap(),
            b"text"
        );
    }

    #[test]
    fn keys_are_read_as_age_writes_them() {
        let identity = Identity::generate().unwrap();
        let text = identity.secret().unwrap();
        assert!(text.starts_with("AGE-SECRET-KEY-1"), "{text}");
        let read = Identity::parse_file(&format!("# created\n\n{text}\n")).unwrap();
        assert_eq!(read.len(), 1);
        let recipient = identity.recipient().unwrap().to_string();
        assert_eq!(read[0].recipient().unwrap().to_string(), recipient);
        recipient.parse::<Recipient>().unwrap();
        for wrong in ["", "age1", "ssh-ed25519 AAAA", &recipient[..40]] {
            assert!(wrong.parse::<Recipient>().is_err(), "{wrong}");
        }
        assert!(Identity::parse_file("# none\n").is_err());
    }
}
