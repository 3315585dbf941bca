//! Public keys of an issuer (RFC 7517).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey,
};
use serde::Deserialize;
use serde_json::Value;

use super::options::Algorithm;
use crate::http::bounds;

/// The keys of an issuer that can check signatures.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct KeySet(Vec<Key>);

/// A key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Key {
    id: Option<String>,
    public: PublicKey,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum PublicKey {
    Rsa {
        modulus: Vec<u8>,
        exponent: Vec<u8>,
    },
    /// The point on P-256, uncompressed.
    P256(Vec<u8>),
    Ed25519(Vec<u8>),
}

#[derive(Debug, Deserialize)]
struct Document {
    keys: Vec<Value>,
}

/// A key as the issuer publishes it.
#[derive(Debug, Deserialize)]
struct Jwk {
    kty: String,
    kid: Option<String>,
    alg: Option<String>,
    #[serde(rename = "use")]
    usage: Option<String>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

impl KeySet {
    /// Reads a document of keys. Keys of other sorts, for encryption or without meaning here, are
    /// left out.
    pub(super) fn read(document: &[u8]) -> Result<Self, String> {
        let Document { keys } =
            serde_json::from_slice(document).map_err(|error| format!("it is no set of keys: {error}"))?;
        let limit = bounds::ISSUER_KEYS;
        if keys.len() > limit {
            return Err(format!("it has {} keys of at most {limit}", keys.len()));
        }
        Ok(Self(keys.into_iter().filter_map(|key| Key::read(serde_json::from_value(key).ok()?)).collect()))
    }

    /// Returns the keys that may have made a signature. A token that names its key is checked with
    /// that key alone.
    pub(super) fn matching<'k>(
        &'k self,
        algorithm: Algorithm,
        id: Option<&'k str>,
    ) -> impl Iterator<Item = &'k Key> + 'k {
        self.0.iter().filter(move |key| key.algorithm() == algorithm && (id.is_none() || key.id.as_deref() == id))
    }

    /// Returns true if some key may have made a signature.
    pub(super) fn has(&self, algorithm: Algorithm, id: Option<&str>) -> bool {
        self.matching(algorithm, id).next().is_some()
    }
}

impl Key {
    fn read(jwk: Jwk) -> Option<Self> {
        let public = match (jwk.kty.as_str(), jwk.crv.as_deref()) {
            ("RSA", _) => PublicKey::Rsa { modulus: number(jwk.n)?, exponent: number(jwk.e)? },
            ("EC", Some("P-256")) => PublicKey::P256([vec![4], bytes(jwk.x, 32)?, bytes(jwk.y, 32)?].concat()),
            ("OKP", Some("Ed25519")) => PublicKey::Ed25519(bytes(jwk.x, 32)?),
            _ => return None,
        };
        let key = Self { id: jwk.kid, public };
        let signs = jwk.usage.is_none_or(|usage| usage == "sig");
        // A key is for one algorithm, so that no header can choose another one for it.
        let agrees = jwk.alg.is_none_or(|alg| alg == key.algorithm().as_str());
        (signs && agrees).then_some(key)
    }

    fn algorithm(&self) -> Algorithm {
        match self.public {
            PublicKey::Rsa { .. } => Algorithm::Rs256,
            PublicKey::P256(_) => Algorithm::Es256,
            PublicKey::Ed25519(_) => Algorithm::EdDsa,
        }
    }

    /// Returns true if the key has made a signature.
    pub(super) fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        let verified = match &self.public {
            PublicKey::Rsa { modulus, exponent } => RsaPublicKeyComponents { n: modulus, e: exponent }.verify(
                &RSA_PKCS1_2048_8192_SHA256,
                message,
                signature,
            ),
            PublicKey::P256(point) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(message, signature)
            }
            PublicKey::Ed25519(point) => UnparsedPublicKey::new(&ED25519, point).verify(message, signature),
        };
        verified.is_ok()
    }
}

fn bytes(text: Option<String>, length: usize) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text?).ok().filter(|bytes| bytes.len() == length)
}

/// Returns a number without leading zeros, which some issuers write.
fn number(text: Option<String>) -> Option<Vec<u8>> {
    let mut bytes = URL_SAFE_NO_PAD.decode(text?).ok()?;
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    bytes.drain(..zeros);
    (!bytes.is_empty()).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(key: &str) -> KeySet {
        KeySet::read(format!(r#"{{"keys":[{key}]}}"#).as_bytes()).expect("it is a set")
    }

    const X: &str = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";

    #[test]
    fn keys_of_other_sorts_are_left_out() {
        let ed = format!(r#"{{"kty":"OKP","crv":"Ed25519","x":"{X}","kid":"a"}}"#);
        assert!(read(&ed).has(Algorithm::EdDsa, Some("a")) && read(&ed).has(Algorithm::EdDsa, None));
        assert!(!read(&ed).has(Algorithm::EdDsa, Some("b")) && !read(&ed).has(Algorithm::Es256, Some("a")));
        for other in [
            r#"{"kty":"oct","k":"c2VjcmV0","alg":"HS256"}"#.to_owned(),
            format!(r#"{{"kty":"OKP","crv":"Ed25519","x":"{X}","use":"enc"}}"#),
            format!(r#"{{"kty":"OKP","crv":"Ed25519","x":"{X}","alg":"ES256"}}"#),
            format!(r#"{{"kty":"OKP","crv":"X25519","x":"{X}"}}"#),
            r#"{"kty":"EC","crv":"P-256","x":"AA","y":"AA"}"#.to_owned(),
            r#"{"kty":"RSA","n":"","e":"AQAB"}"#.to_owned(),
            r#"{"kty":7}"#.to_owned(),
            "7".to_owned(),
        ] {
            assert_eq!(read(&other), KeySet::default(), "{other}");
        }
    }

    #[test]
    fn a_set_is_bounded_and_has_its_form() {
        let many = vec!["{}"; bounds::ISSUER_KEYS + 1].join(",");
        assert!(KeySet::read(format!(r#"{{"keys":[{many}]}}"#).as_bytes()).unwrap_err().contains("at most"));
        assert!(KeySet::read(b"[]").is_err() && KeySet::read(b"{}").is_err() && KeySet::read(b"").is_err());
    }
}
