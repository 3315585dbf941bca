//! Signatures of deliveries, as [Standard Webhooks](https://www.standardwebhooks.com) defines them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac as _};
use onward_store::Error;
use sha2::Sha256;

/// The beginning of the text of a secret.
const PREFIX: &str = "whsec_";

/// Returns a new secret of 256 random bits, as a text.
pub(crate) fn new_signing_secret() -> Result<String, Error> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)
        .map_err(|error| Error::io(format!("the system supplied no random numbers ({error}); try again")))?;
    Ok(format!("{PREFIX}{}", STANDARD.encode(bytes)))
}

/// Returns the key of the text of a secret; `None` if it is not such a text.
pub(crate) fn signing_key(secret: &str) -> Option<Vec<u8>> {
    let key = STANDARD.decode(secret.strip_prefix(PREFIX)?).ok()?;
    (key.len() >= 24).then_some(key)
}

/// Returns the signature of a delivery: `v1,` and a code in base64.
pub(crate) fn signature_of(key: &[u8], id: &str, seconds: i64, body: &[u8]) -> String {
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else { return String::new() };
    mac.update(format!("{id}.{seconds}.").as_bytes());
    mac.update(body);
    format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the specification.
    #[test]
    fn a_signature_is_that_of_the_specification() {
        let key = signing_key("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let signature = signature_of(&key, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, br#"{"test": 2432232314}"#);
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }
}
