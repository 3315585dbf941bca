//! The outcome of an attempt: a function of the task and of the number of the attempt.

use std::time::Duration;

use fastrand::Rng;
use onward::Failure;
use serde_json::{Value, json};

/// The duration of an attempt, and its end.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) takes: Duration,
    /// The number of parts after which the progress is reported.
    pub(super) parts: u8,
    pub(super) end: Result<Value, Failure>,
}

/// Decides an attempt. The same task, number and attempt have the same outcome.
pub(super) fn decide(kind: &str, task: i64, payload: &Value, attempt: u32) -> Outcome {
    let mut random = Rng::with_seed(task.unsigned_abs().wrapping_mul(31).wrapping_add(attempt.into()));
    let (shortest, longest, parts) = match kind {
        "report.build" => (6_000, 14_000, 20),
        "image.resize" | "catalog.fetch" | "catalog.publish" => (500, 2_500, 1),
        "catalog.row" => (1_500, 4_000, 1),
        "mail.send" => (900, 1_900, 1),
        _ => (80, 900, 1),
    };
    let takes = Duration::from_millis(random.u64(shortest..longest));
    let fate = Rng::with_seed(task.unsigned_abs()).f32();
    let end = failure(kind, payload, fate, random.f32()).map_or_else(|| Ok(result(kind, &mut random)), Err);
    Outcome { takes, parts, end }
}

/// Returns the failure of an attempt. `fate` is the same for all attempts of a task, `luck` is not.
fn failure(kind: &str, payload: &Value, fate: f32, luck: f32) -> Option<Failure> {
    let text = |name: &str| payload.get(name).and_then(Value::as_str).unwrap_or_default();
    match kind {
        "webhook.deliver" if text("url").contains("globex") && text("event") == "order.refunded" => {
            Some(Failure::retryable(format!("HTTP 410 Gone from {}", text("url"))))
        }
        "webhook.deliver" if fate < 0.02 => {
            Some(Failure::retryable(format!("no response from {} within 10 s", text("url"))))
        }
        "webhook.deliver" if luck < 0.12 => Some(Failure::retryable(format!("HTTP 503 from {}", text("url")))),
        "image.resize" if text("picture").ends_with("heic") && fate < 0.5 => {
            Some(Failure::permanent(format!("{} has no known format", text("picture"))))
        }
        "mail.send" if luck < 0.04 => Some(Failure::retryable("421 too many connections from this address")),
        "catalog.row" if fate < 0.1 => Some(Failure::permanent("the price is missing")),
        "card.charge" if text("customer") == "dennis" => Some(Failure::permanent("the card was declined")),
        "parcels.ship" if fate < 0.08 => Some(Failure::permanent("the address does not exist")),
        _ => None,
    }
}

fn result(kind: &str, random: &mut Rng) -> Value {
    match kind {
        "webhook.deliver" => json!({ "status": 200 }),
        "image.resize" => json!({ "bytes": random.u32(20_000..400_000) }),
        "report.build" => json!({ "rows": random.u32(500..90_000) }),
        "stock.reserve" => json!({ "shelf": format!("{}-{}", random.char('A'..='F'), random.u8(1..40)) }),
        "card.charge" | "card.refund" => json!({ "receipt": format!("{:08x}", random.u32(..)) }),
        "parcels.ship" => json!({ "parcel": format!("{:010}", random.u64(..10_000_000_000)) }),
        _ => Value::Null,
    }
}
