//! `/v1/webhooks`: events that are sent to other programs.

use axum::http::{Method, StatusCode};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::route::{Access, Route, route};
use crate::http::access::Role;
use crate::http::bounds;
use crate::http::problem::{Code, Problem};
use crate::http::request::Call;
use crate::http::webhooks::{
    Destination, EVENTS, StoredWebhook, WebhookBody, check_url, new_signing_secret, new_webhook_id,
};
use crate::http::wire::{Page, Reply, created, json, name, no_content};

pub(super) fn table() -> Vec<Route> {
    let admin = Access::Needs(Role::Admin);
    vec![
        route(Method::GET, "/v1/webhooks", admin, "Lists the webhooks.", list)
            .returns_page::<WebhookBody>("All webhooks without their secrets."),
        route(Method::POST, "/v1/webhooks", admin, "Creates a webhook.", create)
            .takes::<CreateWebhookBody>()
            .returns::<NewWebhookBody>(201, "The webhook, and its secret, which is shown once."),
        route(Method::DELETE, "/v1/webhooks/{webhook}", admin, "Deletes a webhook.", delete)
            .returns_nothing("The webhook is gone. Deliveries that were not sent yet fail."),
    ]
}

/// A webhook to create.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct CreateWebhookBody {
    /// The address, which begins with `https://` and is no private one.
    url: String,
    /// The names of the events, such as `completed` or `failed`. Default: all.
    #[serde(default)]
    events: Vec<String>,
    /// The kinds of the tasks, at most 100. Default: all.
    #[serde(default)]
    kinds: Vec<String>,
    /// The queue of the tasks. Default: all.
    queue: Option<String>,
}

/// A webhook and its secret.
#[derive(Debug, Serialize, ToSchema)]
struct NewWebhookBody {
    /// The webhook.
    #[serde(flatten)]
    webhook: WebhookBody,
    /// The secret, which is shown once.
    secret: String,
}

async fn list(call: Call) -> Reply {
    let webhooks = call.server.webhooks.list().await?;
    json(&Page { items: webhooks.into_iter().map(|(id, webhook)| webhook.body(id)).collect(), next: None })
}

async fn create(call: Call) -> Reply {
    let CreateWebhookBody { url, events, kinds, queue } = call.json()?;
    check(&call, &url, &events, &kinds)?;
    queue.as_deref().map(|queue| name("queue", queue)).transpose()?;
    if call.server.webhooks.list().await?.len() >= bounds::WEBHOOKS {
        let detail = format!("there are {} webhooks, which is the limit", bounds::WEBHOOKS);
        return Err(Problem::new(Code::Conflict, detail, "delete one"));
    }
    let (id, secret, created_at) = (new_webhook_id(), new_signing_secret()?, call.server.store.clock().now());
    let webhook = StoredWebhook { url, events, kinds, queue, secret: secret.clone(), created_at };
    call.server.webhooks.put(&id, &webhook).await?;
    let location = format!("/v1/webhooks/{id}");
    created(StatusCode::CREATED, &location, &NewWebhookBody { webhook: webhook.body(id), secret })
}

fn check(call: &Call, url: &str, events: &[String], kinds: &[String]) -> Result<(), Problem> {
    if url.len() > bounds::WEBHOOK_URL_BYTES {
        let detail = format!("the URL has {} bytes and may have {}", url.len(), bounds::WEBHOOK_URL_BYTES);
        return Err(Problem::invalid("url", detail, "shorten it"));
    }
    let allows_private = call.server.options.private_webhooks;
    check_url(Destination { url, allows_private })
        .map_err(|message| Problem::of_message(Code::Invalid, &message).field("url"))?;
    if let Some(unknown) = events.iter().find(|event| !EVENTS.contains(&event.as_str())) {
        let detail = format!("there is no event `{unknown}`");
        return Err(Problem::invalid("events", detail, format!("the events are {}", EVENTS.join(", "))));
    }
    let limit = bounds::WEBHOOK_KINDS;
    if kinds.len() > limit || events.len() > EVENTS.len() {
        let detail = format!("there may be {limit} kinds and {} events", EVENTS.len());
        return Err(Problem::invalid("kinds", detail, "create several webhooks, or leave them out to select all"));
    }
    kinds.iter().try_for_each(|kind| name("kinds", kind).map(drop))
}

async fn delete(call: Call) -> Reply {
    let id = call.parameter("webhook");
    if call.server.webhooks.find(id).await?.is_none() {
        return Err(Problem::not_found("webhook", id, "GET /v1/webhooks lists the ids"));
    }
    call.server.webhooks.delete(id).await?;
    no_content()
}
