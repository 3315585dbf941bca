//! The tasks of the shop, drawn from a seeded generator.

use std::time::Duration;

use fastrand::Rng;
use onward::task::When;
use onward::{Backoff, Name, NewTask, Priority, RetryPolicy};
use serde_json::{Value, json};

/// The customers of the shop's software, each of which is a group.
const TENANTS: [&str; 3] = ["acme", "globex", "initech"];

/// The name of the customer with more mail than its limit allows.
pub(super) const BUSY_TENANT: &str = "initech";

/// The kind of the task that another program completes.
pub(super) const EXTERNAL_KIND: &str = "bank.settle";

/// The people in addresses and payloads.
const PEOPLE: [&str; 8] = ["ada", "grace", "linus", "margaret", "dennis", "barbara", "ken", "radia"];

/// The attempts of a task that fails, so short that a cause becomes visible within a minute.
const RETRY: RetryPolicy = RetryPolicy {
    attempts: 3,
    backoff: Backoff::Exponential { initial: Duration::from_secs(2), factor: 2.0, maximum: Duration::from_secs(10) },
};

/// Draws one task of the ordinary traffic.
pub(super) fn draw(random: &mut Rng) -> anyhow::Result<NewTask> {
    match random.u8(0..100) {
        0..40 => mail(random),
        40..65 => webhook(random),
        65..83 => image(random),
        83..97 => invoice(random),
        _ => report(random),
    }
}

fn mail(random: &mut Rng) -> anyhow::Result<NewTask> {
    let tenant = if random.bool() { BUSY_TENANT } else { pick(random, &TENANTS) };
    let template = pick(random, &["welcome", "receipt", "newsletter", "password"]);
    let to = format!("{}@{tenant}.example", person(random));
    let task = task("mail.send", "mail", tenant, &json!({ "template": template, "to": to }))?;
    Ok(NewTask { priority: if template == "password" { Priority::HIGH } else { Priority::NORMAL }, ..task })
}

fn webhook(random: &mut Rng) -> anyhow::Result<NewTask> {
    let tenant = pick(random, &TENANTS);
    let event = pick(random, &["order.paid", "order.shipped", "order.refunded"]);
    let payload =
        json!({ "url": format!("https://hooks.{tenant}.example/v1"), "event": event, "order": order(random) });
    task("webhook.deliver", "default", tenant, &payload)
}

fn image(random: &mut Rng) -> anyhow::Result<NewTask> {
    let tenant = pick(random, &TENANTS);
    let picture = format!("uploads/{}.{}", random.u32(1000..9999), pick(random, &["jpg", "png", "heic"]));
    task("image.resize", "images", tenant, &json!({ "picture": picture, "width": pick(random, &[320, 640, 1280]) }))
}

fn invoice(random: &mut Rng) -> anyhow::Result<NewTask> {
    let tenant = pick(random, &TENANTS);
    let mut task =
        task("invoice.render", "default", tenant, &json!({ "order": order(random), "pages": random.u8(1..9) }))?;
    task.tags.set("month", "2026-11");
    Ok(task)
}

/// Draws a report, which runs for some seconds and shows its progress.
pub(super) fn report(random: &mut Rng) -> anyhow::Result<NewTask> {
    let tenant = pick(random, &TENANTS);
    task("report.build", "reports", tenant, &json!({ "report": pick(random, &["sales", "returns", "stock"]) }))
}

/// Draws a task that is due within hours.
pub(super) fn reminder(random: &mut Rng) -> anyhow::Result<NewTask> {
    let tenant = pick(random, &TENANTS);
    let after = Duration::from_secs(random.u64(600..30_000));
    let task = task("mail.remind", "mail", tenant, &json!({ "cart": order(random), "to": person(random) }))?;
    Ok(NewTask { when: When::After(after), ..task })
}

/// Draws the input of an order. A large one waits for a person.
pub(super) fn order_input(random: &mut Rng, number: u64, is_large: bool) -> Value {
    let amount = if is_large { random.u32(600..4000) } else { random.u32(10..480) };
    json!({ "order": format!("A-{number}"), "customer": person(random), "amount": amount })
}

/// Returns a task with the defaults of the shop.
pub(super) fn task(kind: &str, queue: &str, tenant: &str, payload: &Value) -> anyhow::Result<NewTask> {
    Ok(NewTask {
        queue: Name::new(queue)?,
        group: Some(Name::new(tenant)?),
        payload: payload.to_string().into(),
        retry: Some(RETRY),
        tags: [("tenant", tenant)].into_iter().collect(),
        ..NewTask::new(kind)?
    })
}

fn order(random: &mut Rng) -> String {
    format!("A-{}", random.u32(10_000..99_999))
}

fn person(random: &mut Rng) -> &'static str {
    pick(random, &PEOPLE)
}

fn pick<T: Copy, const N: usize>(random: &mut Rng, of: &[T; N]) -> T {
    of[random.usize(0..N)]
}
