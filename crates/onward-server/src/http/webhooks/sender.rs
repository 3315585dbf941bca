//! The engine that sends deliveries.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use onward::{Backoff, Context, Engine, Failure, RetryPolicy};
use onward_store::bounds::WEBHOOK_KIND;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::follower::{Delivery, follow};
use super::post::{Destination, Headers, PostError, post};
use super::signature::{signature_of, signing_key};
use crate::http::bounds;
use crate::http::server::Server;

/// The queue of the deliveries.
pub(super) const DELIVERY_QUEUE: &str = "webhooks";

/// Returns the retry policy of a delivery: 12 attempts in about a day.
pub(super) fn delivery_retry() -> RetryPolicy {
    let (initial, maximum) = (Duration::from_secs(10), Duration::from_secs(4 * 3600));
    let backoff = Backoff::ExponentialJitter { initial, factor: 3.0, maximum };
    RetryPolicy { attempts: 12, backoff }
}

/// Sends events to the webhooks of the store until `stop` is cancelled. While there are none, it
/// reads only their list, at most every ten seconds and only after a change of the store.
pub(crate) async fn serve_webhooks(server: &Arc<Server>, stop: CancellationToken) -> Result<(), onward::Error> {
    let engine = Engine::builder()
        .store(Arc::clone(&server.store))
        .queues([DELIVERY_QUEUE])
        .serves_reserved_kinds()
        .concurrency(bounds::DELIVERIES_AT_ONCE)
        .open()
        .await?;
    let sending = Arc::clone(server);
    engine.handle_json(WEBHOOK_KIND, move |payload, _: Context| {
        let server = Arc::clone(&sending);
        async move { send(&server, payload).await }
    });
    let (begun, begin) = (AtomicBool::new(false), Notify::new());
    let following = follow(server, &stop, || {
        if !begun.swap(true, Ordering::Relaxed) {
            begin.notify_one();
        }
    });
    let running = async {
        tokio::select! {
            () = begin.notified() => engine.run().await,
            () = stop.cancelled() => Ok(()),
        }
    };
    let stopping = async {
        stop.cancelled().await;
        engine.stop();
    };
    let ((), ran, ()) = tokio::join!(following, running, stopping);
    ran
}

async fn send(server: &Server, payload: Value) -> Result<Value, Failure> {
    let Delivery { webhook, id, body } = serde_json::from_value(payload)
        .map_err(|error| Failure::permanent(format!("the payload is not that of a delivery: {error}")))?;
    let Some(found) = server.webhooks.find(&webhook).await? else {
        return Err(Failure::permanent(format!("there is no webhook {webhook} any more")));
    };
    let key = signing_key(&found.secret).ok_or_else(|| Failure::permanent("the secret of the webhook is damaged"))?;
    let destination = Destination { url: &found.url, allows_private: server.options.private_webhooks };
    let seconds = server.store.clock().now().as_microseconds().div_euclid(1_000_000);
    let signature = signature_of(&key, &id, seconds, body.as_bytes());
    let headers: Headers<'_> =
        &[("webhook-id", &id), ("webhook-timestamp", &seconds.to_string()), ("webhook-signature", &signature)];
    match post(destination, headers, body.into()).await {
        Ok(status) if status.is_success() => Ok(json!({ "status": status.as_u16() })),
        // Status 410 means that the receiver is gone for good.
        Ok(status) if status.as_u16() == 410 => Err(Failure::permanent("the receiver returned status 410")),
        Ok(status) => Err(Failure::retryable(format!("the receiver returned status {}", status.as_u16()))),
        Err(PostError::Refused(message)) => Err(Failure::permanent(message)),
        Err(PostError::Failed(message)) => Err(Failure::retryable(message)),
    }
}
