//! The claims of a token whose signature is right.

use onward_store::Timestamp;
use serde_json::{Map, Value};
use subtle::ConstantTimeEq as _;

use super::rejection::Rejection;
use crate::http::bounds;

/// The claims of a token.
#[derive(Debug)]
pub(super) struct Claims(Map<String, Value>);

impl Claims {
    pub(super) fn new(claims: Map<String, Value>) -> Self {
        Self(claims)
    }

    /// Returns a text that is not empty.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.as_str().filter(|text| !text.is_empty())
    }

    /// Checks the issuer, the subject and the times. Returns the time at which the token expires.
    pub(super) fn check(&self, issuer: &str, now: Timestamp) -> Result<Timestamp, Rejection> {
        if self.text("iss") != Some(issuer) {
            return Err(Rejection::Claim("iss"));
        }
        if self.text("sub").is_none_or(|subject| subject.len() > bounds::SUBJECT_BYTES) {
            return Err(Rejection::Claim("sub"));
        }
        let skew = bounds::TOKEN_SKEW;
        let expires = self.time("exp")?.ok_or(Rejection::Claim("exp"))?.plus(skew);
        if expires <= now {
            return Err(Rejection::Expired);
        }
        for name in ["nbf", "iat"] {
            if self.time(name)?.is_some_and(|time| time > now.plus(skew)) {
                return Err(Rejection::Early);
            }
        }
        Ok(expires)
    }

    /// Checks that the token is for one of these audiences.
    pub(super) fn check_audience(&self, accepted: &[String]) -> Result<(), Rejection> {
        let is_accepted = |audience: &str| accepted.iter().any(|it| it == audience);
        match self.audiences().into_iter().any(is_accepted) {
            true => Ok(()),
            false => Err(Rejection::Claim("aud")),
        }
    }

    /// Checks that the token is an ID token for a client and for one sign-in.
    pub(super) fn check_id_token(&self, client: &str, nonce: &str) -> Result<(), Rejection> {
        let audiences = self.audiences();
        if !audiences.contains(&client) {
            return Err(Rejection::Claim("aud"));
        }
        let party = self.text("azp");
        if party.is_some_and(|party| party != client) || (audiences.len() > 1 && party.is_none()) {
            return Err(Rejection::Claim("azp"));
        }
        let given = self.text("nonce").unwrap_or_default();
        match bool::from(given.as_bytes().ct_eq(nonce.as_bytes())) {
            true => Ok(()),
            false => Err(Rejection::Claim("nonce")),
        }
    }

    /// Returns the texts of a claim: its own, or those of a list. `scope` has words. A name with
    /// dots is that of a claim within others, unless a claim has the whole name.
    pub(super) fn values(&self, name: &str) -> Vec<&str> {
        let Some(value) = self.0.get(name).or_else(|| self.within(name)) else { return Vec::new() };
        match value {
            Value::String(text) if name == "scope" => text.split(' ').collect(),
            value => texts(value),
        }
    }

    fn within(&self, path: &str) -> Option<&Value> {
        let mut parts = path.split('.');
        let first = self.0.get(parts.next()?)?;
        parts.try_fold(first, |value, part| value.get(part))
    }

    fn audiences(&self) -> Vec<&str> {
        self.0.get("aud").map(texts).unwrap_or_default()
    }

    /// Returns a time in seconds. A fraction is left out.
    fn time(&self, name: &'static str) -> Result<Option<Timestamp>, Rejection> {
        let Some(value) = self.0.get(name) else { return Ok(None) };
        let seconds = value.as_i64().or_else(|| whole(value.as_f64()?)).ok_or(Rejection::Claim(name))?;
        Ok(Some(Timestamp::from_microseconds(seconds.saturating_mul(1_000_000))))
    }
}

/// Returns the whole part of a number of seconds that a clock can have.
#[expect(clippy::cast_possible_truncation, reason = "the range was checked")]
fn whole(seconds: f64) -> Option<i64> {
    (0.0..1e11).contains(&seconds).then_some(seconds as i64)
}

fn texts(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(values) => values.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NOW: i64 = 1_700_000_000;

    fn claims(value: Value) -> Claims {
        match value {
            Value::Object(claims) => Claims::new(claims),
            _ => panic!("no object"),
        }
    }

    fn check(changed: Value) -> Result<(), Rejection> {
        let mut all = json!({"iss": "https://id.example", "sub": "ada", "exp": NOW + 60});
        for (name, value) in changed.as_object().expect("an object") {
            all[name] = value.clone();
        }
        claims(all).check("https://id.example", Timestamp::from_microseconds(NOW * 1_000_000)).map(drop)
    }

    #[test]
    fn times_have_a_skew_of_a_minute_and_no_more() {
        for right in [
            json!({}),
            json!({"exp": NOW - 59}),
            json!({"exp": (NOW + 1) as f64 + 0.5}),
            json!({"nbf": NOW + 60, "iat": NOW + 60}),
        ] {
            assert_eq!(check(right.clone()), Ok(()), "{right}");
        }
        assert_eq!(check(json!({"exp": NOW - 60})), Err(Rejection::Expired));
        assert_eq!(check(json!({"nbf": NOW + 61})), Err(Rejection::Early));
        assert_eq!(check(json!({"iat": NOW + 61})), Err(Rejection::Early));
    }

    #[test]
    fn claims_of_another_type_are_refused() {
        for (claim, value) in [
            ("exp", json!("1800000000")),
            ("exp", json!(null)),
            ("exp", json!(1e300)),
            ("nbf", json!("0")),
            ("iat", json!([])),
            ("iss", json!(["https://id.example"])),
            ("iss", json!("https://id.example/")),
            ("sub", json!("")),
            ("sub", json!(7)),
            ("sub", json!("x".repeat(bounds::SUBJECT_BYTES + 1))),
        ] {
            assert_eq!(check(json!({claim: value})), Err(Rejection::Claim(claim)), "{claim} {value}");
        }
    }

    #[test]
    fn an_id_token_is_for_one_client_and_one_sign_in() {
        let check = |value| claims(value).check_id_token("onward", "n");
        assert_eq!(check(json!({"aud": "onward", "nonce": "n"})), Ok(()));
        assert_eq!(check(json!({"aud": ["a", "onward"], "azp": "onward", "nonce": "n"})), Ok(()));
        assert_eq!(check(json!({"aud": "other", "nonce": "n"})), Err(Rejection::Claim("aud")));
        assert_eq!(check(json!({"aud": ["a", "onward"], "nonce": "n"})), Err(Rejection::Claim("azp")));
        assert_eq!(check(json!({"aud": "onward", "azp": "a", "nonce": "n"})), Err(Rejection::Claim("azp")));
        assert_eq!(check(json!({"aud": "onward", "nonce": "m"})), Err(Rejection::Claim("nonce")));
        assert_eq!(check(json!({"aud": "onward"})), Err(Rejection::Claim("nonce")));
    }

    #[test]
    fn values_are_found_by_name_and_by_path() {
        let claims = claims(json!({
            "groups": ["a", 7, "b"], "scope": "read write", "role": "one two",
            "realm_access": {"roles": ["c"]}, "https://id.example/roles": "d",
        }));
        assert_eq!(claims.values("groups"), ["a", "b"]);
        assert_eq!(claims.values("scope"), ["read", "write"]);
        assert_eq!(claims.values("role"), ["one two"]);
        assert_eq!(claims.values("realm_access.roles"), ["c"]);
        assert_eq!(claims.values("https://id.example/roles"), ["d"]);
        assert!(claims.values("realm_access.none.deeper").is_empty() && claims.values("").is_empty());
    }
}
