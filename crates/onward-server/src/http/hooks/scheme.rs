//! The schemes of signatures, and their checks.

use axum::http::HeaderMap;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac as _};
use onward_store::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::Sha256;
use utoipa::ToSchema;

use super::hook::StoredHook;
use crate::http::bounds;
use crate::http::webhooks::signing_key;

/// A scheme of signatures.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Scheme {
    /// Standard Webhooks: `webhook-id`, `webhook-timestamp` and `webhook-signature`. The secret
    /// begins with `whsec_`. The webhooks of Onward use it.
    Standard,
    /// GitHub: `X-Hub-Signature-256` and `X-GitHub-Delivery`. It signs neither id nor time.
    Github,
    /// Stripe: `Stripe-Signature`, and the id in the body.
    Stripe,
    /// A code of HMAC-SHA256 over the body, in a header.
    Hmac(HmacScheme),
}

/// The headers of a scheme with a code over the body. It signs neither id nor time.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct HmacScheme {
    /// The header with the code, in hexadecimal or base64, perhaps after `sha256=`.
    pub(crate) signature_header: String,
    /// The header with the id of the delivery.
    pub(crate) id_header: String,
}

/// A delivery whose signature is right.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Delivery {
    /// The id that the sender gave it.
    pub(crate) id: String,
    /// The sort of event, if the sender names it.
    pub(crate) event: Option<String>,
}

/// Checks the signature of a delivery, and the window of its time if the scheme signs one. Returns
/// `None` if anything is wrong or missing.
pub(crate) fn verify(hook: &StoredHook, headers: &HeaderMap, body: &[u8], now: Timestamp) -> Option<Delivery> {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let of_body = |field: &str| {
        let body: Value = serde_json::from_slice(body).ok()?;
        body.get(field)?.as_str().map(str::to_owned)
    };
    let secret = hook.secret.as_bytes();
    let (id, event) = match &hook.scheme {
        Scheme::Standard => {
            let (id, time) = (header("webhook-id")?, header("webhook-timestamp")?);
            is_recent(time, now).then_some(())?;
            let signed = [id.as_bytes(), b".", time.as_bytes(), b".", body];
            let mut codes = header("webhook-signature")?.split(' ').filter_map(|it| it.strip_prefix("v1,"));
            let key = signing_key(&hook.secret)?;
            codes.any(|code| matches(&key, &signed, code)).then(|| (id.to_owned(), of_body("type")))?
        }
        Scheme::Github => {
            let code = header("x-hub-signature-256")?.strip_prefix("sha256=")?;
            matches(secret, &[body], code).then_some(())?;
            (header("x-github-delivery")?.to_owned(), header("x-github-event").map(str::to_owned))
        }
        Scheme::Stripe => {
            let parts = || header("stripe-signature").into_iter().flat_map(|parts| parts.split(','));
            let time = parts().find_map(|part| part.trim().strip_prefix("t="))?;
            is_recent(time, now).then_some(())?;
            let mut codes = parts().filter_map(|part| part.trim().strip_prefix("v1="));
            codes.any(|code| matches(secret, &[time.as_bytes(), b".", body], code)).then_some(())?;
            (of_body("id")?, of_body("type"))
        }
        Scheme::Hmac(scheme) => {
            let code = header(&scheme.signature_header)?;
            let code = code.strip_prefix("sha256=").unwrap_or(code);
            matches(secret, &[body], code).then_some(())?;
            (header(&scheme.id_header)?.to_owned(), of_body("type"))
        }
    };
    (1..=bounds::DELIVERY_ID_BYTES).contains(&id.len()).then_some(Delivery { id, event })
}

/// Returns true if a time in seconds since 1970 is within the window.
fn is_recent(seconds: &str, now: Timestamp) -> bool {
    let now = now.as_microseconds().div_euclid(1_000_000);
    let window = bounds::HOOK_WINDOW.as_secs();
    seconds.parse::<i64>().is_ok_and(|then| now.abs_diff(then) <= window)
}

/// Compares a code, in hexadecimal or base64, with that of the parts, in a time that does not
/// depend on the code.
fn matches(key: &[u8], parts: &[&[u8]], code: &str) -> bool {
    let Some(code) = hexadecimal(code).or_else(|| STANDARD.decode(code).ok()) else { return false };
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else { return false };
    parts.iter().for_each(|part| mac.update(part));
    mac.verify_slice(&code).is_ok()
}

fn hexadecimal(text: &str) -> Option<Vec<u8>> {
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    (0..32).map(|index| u8::from_str_radix(&text[2 * index..2 * index + 2], 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use onward_store::Timestamp;

    use super::super::hook::{HookTarget, TaskTarget};
    use super::*;

    fn hook(scheme: Scheme, secret: &str) -> StoredHook {
        let task = TaskTarget { kind: "k".to_owned(), queue: None, group: None, priority: None };
        let (secret, target) = (secret.to_owned(), HookTarget::Task(task));
        StoredHook { scheme, secret, events: Vec::new(), target, created_at: Timestamp::MIN }
    }

    fn headers(headers: &[(&'static str, &str)]) -> HeaderMap {
        headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    /// The example of GitHub's documentation.
    #[test]
    fn a_signature_of_github_is_checked() {
        let hook = hook(Scheme::Github, "It's a Secret to Everybody");
        let right = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
        let check = |signature: &str, body: &[u8]| {
            let headers = headers(&[("x-hub-signature-256", signature), ("x-github-delivery", "7")]);
            verify(&hook, &headers, body, Timestamp::MIN)
        };
        assert_eq!(check(right, b"Hello, World!"), Some(Delivery { id: "7".to_owned(), event: None }));
        assert_eq!(check(right, b"Hello, World?"), None);
        for wrong in ["", "sha256=", "sha256=zz", &right.replace('7', "8"), &right[7..], &"é".repeat(32)] {
            let wrong = wrong.replace('é', "e");
            assert_eq!(check(&wrong, b"Hello, World!"), None, "{wrong}");
        }
    }

    /// The example of the specification of Standard Webhooks.
    #[test]
    fn a_standard_signature_holds_for_five_minutes() {
        let hook = hook(Scheme::Standard, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
        let body = br#"{"test": 2432232314}"#;
        let check = |now: i64, id: &str| {
            let headers = headers(&[
                ("webhook-id", id),
                ("webhook-timestamp", "1614265330"),
                ("webhook-signature", "v1,AAAA v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="),
            ]);
            verify(&hook, &headers, body, Timestamp::from_microseconds(now * 1_000_000)).is_some()
        };
        let (id, sent) = ("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330);
        assert!(check(sent, id) && check(sent + 300, id) && check(sent - 300, id));
        assert!(!check(sent + 301, id) && !check(sent - 301, id) && !check(sent, "msg_other"));
    }
}
