//! A sign-in in progress.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, Mac as _};
use onward_store::{Error, Timestamp};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use crate::http::access::secret::new_secret;
use crate::http::bounds;

/// A sign-in in progress. The browser keeps it in a cookie, so any server can finish what another
/// one has begun, and a client without a credential writes nothing to the store.
///
/// Its text has the time of the start, 256 random bits and the place to return to. State, nonce and
/// PKCE verifier are codes of the text, so the state that travels in URLs shows none of the others.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Flow {
    text: String,
    place: String,
}

impl Flow {
    /// Begins a sign-in that returns to a place of the page.
    pub(crate) fn begin(now: Timestamp, place: &str) -> Result<Self, Error> {
        let seconds = now.as_microseconds() / 1_000_000;
        let text = format!("{seconds}.{}.{}", new_secret()?, URL_SAFE_NO_PAD.encode(place));
        Ok(Self { text, place: place.to_owned() })
    }

    /// Returns the sign-in of a cookie, if it has a state and is not over.
    pub(crate) fn resume(cookie: &str, state: &str, now: Timestamp) -> Option<Self> {
        let mut parts = cookie.splitn(3, '.');
        let (seconds, _, place) = (parts.next()?, parts.next()?, parts.next()?);
        let place = String::from_utf8(URL_SAFE_NO_PAD.decode(place).ok()?).ok()?;
        let flow = Self { text: cookie.to_owned(), place };
        if !bool::from(flow.state().as_bytes().ct_eq(state.as_bytes())) {
            return None;
        }
        let began = Timestamp::from_microseconds(seconds.parse::<i64>().ok()?.checked_mul(1_000_000)?);
        (began <= now && now < began.plus(bounds::OIDC_TIME)).then_some(flow)
    }

    /// Returns the text for the cookie.
    pub(crate) fn cookie(&self) -> &str {
        &self.text
    }

    /// Returns the place of the page to return to.
    pub(crate) fn place(&self) -> &str {
        &self.place
    }

    /// Returns the text that the issuer returns with its response.
    pub(crate) fn state(&self) -> String {
        self.code("state")
    }

    /// Returns the text that the issuer puts into the ID token.
    pub(crate) fn nonce(&self) -> String {
        self.code("nonce")
    }

    /// Returns the text that proves to the issuer that the code is used by the client that asked
    /// for it (RFC 7636).
    pub(crate) fn verifier(&self) -> String {
        self.code("verifier")
    }

    /// Returns the digest of the verifier, which the issuer receives first.
    pub(crate) fn challenge(&self) -> String {
        URL_SAFE_NO_PAD.encode(Sha256::digest(self.verifier()))
    }

    fn code(&self, purpose: &str) -> String {
        // HMAC takes a key of any length.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(self.text.as_bytes()) else { return String::new() };
        mac.update(purpose.as_bytes());
        URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes())
    }
}

/// Returns true if a text is a place of the page, and of nothing else: `#/` and printable ASCII.
pub(crate) fn is_place(text: &str) -> bool {
    text.starts_with("#/")
        && text.len() <= bounds::OIDC_RETURN_BYTES
        && text.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"<>\\^`{|}".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_microseconds(seconds * 1_000_000)
    }

    #[test]
    fn a_sign_in_resumes_with_its_cookie_and_its_state_only() {
        let flow = Flow::begin(at(1000), "#/tasks/5").expect("there are random numbers");
        let other = Flow::begin(at(1000), "#/tasks/5").expect("there are random numbers");
        assert_eq!(Flow::resume(flow.cookie(), &flow.state(), at(1001)).as_ref(), Some(&flow));
        assert_eq!(flow.place(), "#/tasks/5");
        for (cookie, state) in [
            (flow.cookie(), other.state()),
            (other.cookie(), flow.state()),
            (flow.cookie(), String::new()),
            (flow.cookie(), flow.nonce()),
            ("", String::new()),
            ("1000..", flow.state()),
        ] {
            assert_eq!(Flow::resume(cookie, &state, at(1001)), None, "{cookie} {state}");
        }
        // A place or a time that was changed has another state.
        let changed = flow.cookie().replacen("1000", "9000", 1);
        assert_eq!(Flow::resume(&changed, &flow.state(), at(9001)), None);
    }

    #[test]
    fn a_sign_in_ends_after_its_time() {
        let flow = Flow::begin(at(1000), "#/").expect("there are random numbers");
        let resume = |seconds| Flow::resume(flow.cookie(), &flow.state(), at(seconds));
        assert!(resume(1599).is_some() && resume(1600).is_none() && resume(999).is_none());
    }

    #[test]
    fn state_nonce_and_verifier_are_independent_codes() {
        let flow = Flow::begin(at(1000), "#/").expect("there are random numbers");
        let all = [flow.state(), flow.nonce(), flow.verifier(), flow.challenge()];
        assert!(all.iter().all(|code| code.len() == 43));
        assert_eq!(all.iter().collect::<std::collections::BTreeSet<_>>().len(), 4);
    }

    #[test]
    fn a_place_is_one_of_the_page() {
        for place in ["#/", "#/tasks/5", "#/tasks?state=dead&queue=a%20b"] {
            assert!(is_place(place), "{place}");
        }
        for other in ["", "/", "#", "//evil.example", "https://evil.example", "#/a\r\nset-cookie: a", "#/ä", "#/<b>"] {
            assert!(!is_place(other), "{other}");
        }
        assert!(!is_place(&format!("#/{}", "a".repeat(bounds::OIDC_RETURN_BYTES))));
    }
}
