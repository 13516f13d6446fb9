//! Messages to browsers, encrypted for the browser alone (RFC 8291) in one record of `aes128gcm` (RFC 8188).

use aws_lc_rs::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::agreement::{ECDH_P256, PrivateKey, UnparsedPublicKey, agree};
use aws_lc_rs::hkdf::{HKDF_SHA256, KeyType, Salt};
use nudge_platform::secrets;

use super::Subscription;

/// The size of records (RFC 8188); there is one, and it is not full.
const RECORD_SIZE: u32 = 4_096;
/// Ends the last record.
const LAST_RECORD: u8 = 2;

/// The subscription's key is none, which is checked when it is registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the subscription's keys can't be used")]
pub(super) struct BadKeys;

/// A number of bytes that are derived.
struct Length(usize);

impl KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

/// Encrypts a message, with a key and a salt that no other message has.
pub(super) fn encrypt(subscription: &Subscription, plain: &[u8]) -> Result<Vec<u8>, BadKeys> {
    let own = PrivateKey::generate(&ECDH_P256).map_err(|_| BadKeys)?;
    encrypt_with(subscription, plain, &own, secrets::random())
}

fn encrypt_with(
    subscription: &Subscription,
    plain: &[u8],
    own: &PrivateKey,
    salt: [u8; 16],
) -> Result<Vec<u8>, BadKeys> {
    let public = own.compute_public_key().map_err(|_| BadKeys)?;
    let theirs = subscription.p256dh.as_slice();
    let peer = UnparsedPublicKey::new(&ECDH_P256, theirs);
    let shared = agree(own, peer, BadKeys, |secret| Ok(secret.to_vec()))?;

    let info = [b"WebPush: info\0", theirs, public.as_ref()].concat();
    let material: [u8; 32] = derive(&subscription.auth, &shared, &info)?;
    let key: [u8; 16] = derive(&salt, &material, b"Content-Encoding: aes128gcm\0")?;
    let nonce: [u8; 12] = derive(&salt, &material, b"Content-Encoding: nonce\0")?;

    let mut record = plain.to_vec();
    record.push(LAST_RECORD);
    let key = UnboundKey::new(&AES_128_GCM, &key).map_err(|_| BadKeys)?;
    LessSafeKey::new(key)
        .seal_in_place_append_tag(
            Nonce::assume_unique_for_key(nonce),
            Aad::empty(),
            &mut record,
        )
        .map_err(|_| BadKeys)?;
    let key_length = u8::try_from(public.as_ref().len()).map_err(|_| BadKeys)?;
    Ok([
        salt.as_slice(),
        &RECORD_SIZE.to_be_bytes(),
        &[key_length],
        public.as_ref(),
        &record,
    ]
    .concat())
}

fn derive<const N: usize>(salt: &[u8], secret: &[u8], info: &[u8]) -> Result<[u8; N], BadKeys> {
    let mut derived = [0; N];
    Salt::new(HKDF_SHA256, salt)
        .extract(secret)
        .expand(&[info], Length(N))
        .and_then(|key| key.fill(&mut derived))
        .map_err(|_| BadKeys)?;
    Ok(derived)
}

/// Whether a browser's public key is a point that can be agreed with.
pub(crate) fn is_point(p256dh: &[u8]) -> bool {
    let Ok(own) = PrivateKey::generate(&ECDH_P256) else {
        return false;
    };
    let peer = UnparsedPublicKey::new(&ECDH_P256, p256dh);
    p256dh.len() == 65 && agree(&own, peer, BadKeys, |_| Ok(())).is_ok()
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;

    use super::super::payload::WEBPUSH_OVERHEAD;
    use super::*;

    fn bytes(text: &str) -> Vec<u8> {
        URL_SAFE_NO_PAD.decode(text).unwrap()
    }

    /// The keys of RFC 8291, section 5.
    fn subscription() -> Subscription {
        Subscription {
            endpoint: String::new(),
            p256dh: bytes(
                "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
            ),
            auth: bytes("BTBZMqHH6r4Tts7J_aSIgg"),
        }
    }

    #[test]
    fn the_example_of_the_rfc_comes_out() {
        let own = bytes("yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw");
        let own = PrivateKey::from_private_key(&ECDH_P256, &own).unwrap();
        let salt = bytes("DGv6ra1nlYgDCS1FRnbzlw").try_into().unwrap();
        let plain = b"When I grow up, I want to be a watermelon";
        let encrypted = encrypt_with(&subscription(), plain, &own, salt).unwrap();
        let expected = "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN";
        assert_eq!(URL_SAFE_NO_PAD.encode(encrypted), expected);
    }

    #[test]
    fn encryption_adds_what_the_size_says_and_never_the_same() {
        let once = encrypt(&subscription(), b"hello").unwrap();
        assert_eq!(once.len(), 5 + WEBPUSH_OVERHEAD);
        assert_ne!(once, encrypt(&subscription(), b"hello").unwrap());
    }

    #[test]
    fn what_is_no_point_is_told() {
        assert!(is_point(&subscription().p256dh));
        let mut off = subscription().p256dh;
        off[10] ^= 1;
        assert!(!is_point(&off));
        assert!(!is_point(&[4; 64]));
        let bad = Subscription {
            p256dh: off,
            ..subscription()
        };
        assert_eq!(encrypt(&bad, b"x"), Err(BadKeys));
    }
}
