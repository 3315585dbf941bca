//! The form of a JSON Web Token (RFC 7515, RFC 7519) and the check of its signature.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::claims::Claims;
use super::keys::KeySet;
use super::options::Algorithm;
use super::rejection::Rejection;
use crate::http::bounds;

/// The types of tokens that are accepted, in small letters. A token for another purpose, such as a
/// logout token, has another one.
const TYPES: [&str; 4] = ["jwt", "application/jwt", "at+jwt", "application/at+jwt"];

/// A token whose signature was not checked yet.
#[derive(Debug)]
pub(super) struct Unchecked<'t> {
    pub(super) algorithm: Algorithm,
    pub(super) key_id: Option<String>,
    signed: &'t str,
    payload: &'t str,
    signature: Vec<u8>,
}

/// The header of a token. Other fields have no effect on the signature.
#[derive(Debug, Deserialize)]
struct Header {
    alg: String,
    kid: Option<String>,
    typ: Option<String>,
    /// Extensions that must be understood. None is.
    crit: Option<Value>,
}

/// Returns true if a credential has the form of a token: three parts, of which no key has any.
pub(crate) fn looks_like_token(credential: &str) -> bool {
    credential.bytes().filter(|byte| *byte == b'.').count() == 2
}

impl<'t> Unchecked<'t> {
    /// Reads the form of a token. `allowed` has the algorithms that may be used: the header of a
    /// token never decides alone how it is checked.
    pub(super) fn read(token: &'t str, allowed: &[Algorithm]) -> Result<Self, Rejection> {
        if token.len() > bounds::TOKEN_BYTES {
            return Err(Rejection::Malformed("it is too long"));
        }
        let (signed, signature) = token.rsplit_once('.').ok_or(Rejection::Malformed("it has no signature"))?;
        let (header, payload) = signed.split_once('.').ok_or(Rejection::Malformed("it has no payload"))?;
        let header: Header = serde_json::from_slice(&decoded(header)?)
            .map_err(|_| Rejection::Malformed("its header is no JSON with `alg`"))?;
        let algorithm = allowed.iter().find(|it| it.as_str() == header.alg).ok_or(Rejection::Algorithm)?;
        if header.crit.is_some() {
            return Err(Rejection::Malformed("its header has extensions that are not known here"));
        }
        if header.typ.is_some_and(|typ| !TYPES.contains(&typ.to_ascii_lowercase().as_str())) {
            return Err(Rejection::Malformed("its type is not that of an access token or an ID token"));
        }
        let signature = decoded(signature)?;
        Ok(Self { algorithm: *algorithm, key_id: header.kid, signed, payload, signature })
    }

    /// Checks the signature with the keys of the issuer and returns the claims.
    pub(super) fn verify(&self, keys: &KeySet) -> Result<Claims, Rejection> {
        let mut keys = keys.matching(self.algorithm, self.key_id.as_deref());
        if !keys.any(|key| key.verifies(self.signed.as_bytes(), &self.signature)) {
            return Err(Rejection::Signature);
        }
        let claims: Map<String, Value> = serde_json::from_slice(&decoded(self.payload)?)
            .map_err(|_| Rejection::Malformed("its payload is no object of JSON"))?;
        Ok(Claims::new(claims))
    }
}

fn decoded(part: &str) -> Result<Vec<u8>, Rejection> {
    URL_SAFE_NO_PAD.decode(part).map_err(|_| Rejection::Malformed("a part of it is no base64url"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(header: &str) -> String {
        format!("{}.{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode("{}"), URL_SAFE_NO_PAD.encode("x"))
    }

    fn read(header: &str) -> Result<(), Rejection> {
        Unchecked::read(&token(header), &Algorithm::ALL).map(drop)
    }

    #[test]
    fn the_header_is_checked_before_any_key() {
        assert_eq!(read(r#"{"alg":"ES256"}"#), Ok(()));
        assert_eq!(read(r#"{"alg":"ES256","typ":"at+JWT","kid":"a","jku":"https://evil.example"}"#), Ok(()));
        for alg in ["none", "None", "HS256", "RS384", "es256", ""] {
            assert_eq!(read(&format!(r#"{{"alg":"{alg}"}}"#)), Err(Rejection::Algorithm), "{alg}");
        }
        for header in [
            r#"{"alg":"ES256","crit":["b64"],"b64":false}"#,
            r#"{"alg":"ES256","typ":"logout+jwt"}"#,
            r#"{"alg":"ES256","alg":"none"}"#,
            r#"{"alg":["ES256"]}"#,
            "{}",
            "nonsense",
        ] {
            assert!(matches!(read(header), Err(Rejection::Malformed(_))), "{header}");
        }
        let only = Unchecked::read(&token(r#"{"alg":"ES256"}"#), &[Algorithm::Rs256]).map(drop);
        assert_eq!(only, Err(Rejection::Algorithm));
    }

    #[test]
    fn nonsense_and_long_texts_are_no_tokens() {
        let long = format!("{}.a.b", "a".repeat(bounds::TOKEN_BYTES));
        for text in ["", ".", "..", "a.b", "é.é.é", "a.b.c.d", "====.====.====", &long] {
            assert!(matches!(Unchecked::read(text, &Algorithm::ALL), Err(Rejection::Malformed(_))), "{text}");
        }
        assert!(looks_like_token("a.b.c") && !looks_like_token("onward_0123_abc") && !looks_like_token("a.b"));
    }
}
