//! A subscription that is paid every month for as long as the customer likes. It is an
//! orchestration that runs for ever, receives new prices, and says goodbye when it is cancelled.
//! The clock is moved by hand, so that a year passes at once. `cargo run --example subscription`

use std::sync::Arc;
use std::time::Duration;

use onward::orchestration::{Either, OrchestrationContext, select};
use onward::prelude::*;
use onward::testing::ManualClock;
use serde::{Deserialize, Serialize};

const MONTH: Duration = Duration::from_secs(30 * 24 * 3600);

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Subscription {
    customer: String,
    cents: u64,
    month: u32,
}

impl Task for Subscription {
    const KIND: &'static str = "subscription";
    const ORCHESTRATION: bool = true;
    /// The month in which the subscription ended.
    type Output = u32;

    fn key(&self) -> Option<String> {
        Some(self.customer.clone())
    }
}

#[derive(Serialize, Deserialize)]
struct Charge {
    customer: String,
    cents: u64,
    /// A name of the payment for the bank. It is the same on every retry.
    payment: String,
}

impl Task for Charge {
    const KIND: &'static str = "charge";
    type Output = ();
}

#[derive(Serialize, Deserialize)]
struct Farewell {
    customer: String,
}

impl Task for Farewell {
    const KIND: &'static str = "farewell";
    type Output = ();
}

/// Runs one month. Each month has a history of its own, so that no history grows for years.
async fn subscription(mut it: Subscription, context: OrchestrationContext) -> Result<u32, Failure> {
    let ends = context.now().plus(MONTH);
    let (customer, payment) = (it.customer.clone(), context.uuid());
    context.activity(Charge { customer, cents: it.cents, payment }).await?;
    context.set_status(&format!("month {} is paid", it.month))?;
    loop {
        let price = context.event::<u64>("price")?;
        let end = select(context.timer_until(ends), context.cancelled());
        match select(price, end).await {
            Either::First(cents) => it.cents = cents?,
            Either::Second(Either::First(())) => {
                return Err(context.continue_as_new(&Subscription { month: it.month + 1, ..it }));
            }
            Either::Second(Either::Second(())) => {
                context.activity(Farewell { customer: it.customer }).await?;
                return Ok(it.month);
            }
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let clock = Arc::new(ManualClock::default());
    let engine = Engine::builder().memory().clock(clock.clone()).open().await?;
    engine.register(|charge: Charge, _: Context| async move {
        print_line(&format!("{} pays {} cents ({})", charge.customer, charge.cents, charge.payment));
        Ok(())
    });
    engine.register(|farewell: Farewell, _: Context| async move {
        print_line(&format!("goodbye, {}", farewell.customer));
        Ok(())
    });
    engine.orchestrate(subscription);

    let first = Subscription { customer: "ada".into(), cents: 999, month: 1 };
    let running = engine.submit(first).await?;
    for month in 1..=12 {
        engine.run_until_idle().await?;
        let status = engine.orchestration_status(running.id()).await?.status::<String>()?;
        assert_eq!(status, Some(format!("month {month} is paid")));
        print_line(&status.unwrap_or_default());
        if month == 6 {
            engine.signal_key("subscription", "ada", "price", &1299).await?;
        }
        clock.advance(MONTH);
    }
    engine.cancel(running.id()).await?;
    engine.run_until_idle().await?;
    print_line(&format!("it ended in month {}", running.wait().await?));
    Ok(())
}

#[expect(clippy::print_stdout, reason = "its output")]
fn print_line(line: &str) {
    println!("{line}");
}
