//! A durable function: a subscription that is paid each month, which has twenty seconds here.

use std::time::Duration;

use onward::orchestration::{Either, OrchestrationContext, select};
use onward::{Failure, Task};
use serde::{Deserialize, Serialize};

const MONTH: Duration = Duration::from_secs(20);

/// A subscription.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Subscription {
    pub(super) customer: String,
    pub(super) cents: u64,
    pub(super) month: u32,
}

impl Task for Subscription {
    const KIND: &'static str = "subscription";
    const ORCHESTRATION: bool = true;
    /// The month in which it ended.
    type Output = u32;

    fn key(&self) -> Option<String> {
        Some(self.customer.clone())
    }
}

/// The payment of one month.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Payment {
    customer: String,
    cents: u64,
    once: String,
}

impl Task for Payment {
    const KIND: &'static str = "card.charge";
    type Output = serde_json::Value;
}

/// Runs one month. Each month has a history of its own, so that no history grows.
pub(super) async fn subscription(mut it: Subscription, context: OrchestrationContext) -> Result<u32, Failure> {
    let ends = context.now().plus(MONTH);
    let (customer, once) = (it.customer.clone(), context.uuid());
    context.activity(Payment { customer, cents: it.cents, once }).await?;
    context.set_status(&format!("month {} is paid", it.month))?;
    loop {
        let price = context.event::<u64>("price")?;
        match select(price, select(context.timer_until(ends), context.cancelled())).await {
            Either::First(cents) => it.cents = cents?,
            Either::Second(Either::First(())) => {
                return Err(context.continue_as_new(&Subscription { month: it.month + 1, ..it }));
            }
            Either::Second(Either::Second(())) => return Ok(it.month),
        }
    }
}
