//! `/v1/hooks`: signed requests of other programs.

use std::sync::Arc;

use axum::http::{Method, StatusCode};
use onward_store::{Name, NewTask, Priority, Recipient};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::route::{Access, Route, route};
use super::submit::SubmittedBody;
use crate::http::access::Role;
use crate::http::bounds;
use crate::http::change::{ChangeScope, in_scope};
use crate::http::hooks::{
    HookBody, HookTarget, Scheme, SignalTarget, StoredHook, TaskTarget, delivery_document, verify,
};
use crate::http::problem::{Code, Problem};
use crate::http::request::Call;
use crate::http::webhooks::{new_signing_secret, signing_key};
use crate::http::wire::{Page, Reply, check_text, json, name, no_content, with_status};

pub(super) fn table() -> Vec<Route> {
    let admin = Access::Needs(Role::Admin);
    let path = "/v1/hooks/{hook}";
    vec![
        route(Method::GET, "/v1/hooks", admin, "Lists the hooks.", list)
            .returns_page::<HookBody>("All hooks without their secrets."),
        route(Method::PUT, path, admin, "Creates or replaces a hook.", put)
            .takes::<PutHookBody>()
            .returns::<NewHookBody>(200, "The hook, and its secret if it is a new one, which is shown once."),
        route(Method::DELETE, path, admin, "Deletes a hook.", delete).returns_nothing("The hook is gone."),
        route(Method::POST, path, Access::Open, "Takes a delivery, which its signature admits.", deliver)
            .takes_any_content()
            .returns::<SubmittedBody>(200, "The task that was submitted.")
            .returns_nothing("The signal was sent; or the delivery was taken before, or is of another event."),
    ]
}

/// A hook to create.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct PutHookBody {
    /// The scheme of the signature.
    scheme: Scheme,
    /// The secret, if the sender gave one. Default: a new one.
    secret: Option<String>,
    /// The sorts of events that are taken. Default: all.
    #[serde(default)]
    events: Vec<String>,
    /// The effect of a delivery.
    target: HookTarget,
}

/// A hook and its secret.
#[derive(Debug, Serialize, ToSchema)]
struct NewHookBody {
    /// The hook.
    #[serde(flatten)]
    hook: HookBody,
    /// The new secret, which is shown once.
    #[serde(skip_serializing_if = "Option::is_none")]
    secret: Option<String>,
}

async fn list(call: Call) -> Reply {
    let hooks = call.server.hooks.list().await?;
    json(&Page { items: hooks.into_iter().map(|(name, hook)| hook.body(name)).collect(), next: None })
}

async fn put(call: Call) -> Reply {
    let PutHookBody { scheme, secret, events, target } = call.json()?;
    let hook_name = call.parameter("hook").to_owned();
    check_name(&hook_name)?;
    check_target(&target)?;
    check_events(&events)?;
    let new_secret = match &secret {
        Some(secret) => {
            check_secret(&scheme, secret)?;
            None
        }
        None => Some(new_signing_secret()?),
    };
    let known = call.server.hooks.list().await?;
    if known.len() >= bounds::WEBHOOKS && !known.iter().any(|(name, _)| *name == hook_name) {
        let detail = format!("there are {} hooks, which is the limit", bounds::WEBHOOKS);
        return Err(Problem::new(Code::Conflict, detail, "delete one"));
    }
    let created_at = call.server.store.clock().now();
    let secret = secret.or_else(|| new_secret.clone()).unwrap_or_default();
    let hook = StoredHook { scheme, secret, events, target, created_at };
    call.server.hooks.put(&hook_name, &hook).await?;
    with_status(StatusCode::OK, &NewHookBody { hook: hook.body(hook_name), secret: new_secret })
}

fn check_name(hook: &str) -> Result<(), Problem> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if hook.len() <= bounds::HOOK_NAME_BYTES && hook.bytes().all(is_plain) {
        return Ok(());
    }
    let detail =
        format!("the name is not made of letters, digits and - _ . or exceeds {} bytes", bounds::HOOK_NAME_BYTES);
    Err(Problem::invalid("hook", detail, "choose a name that needs no encoding in a URL"))
}

fn check_secret(scheme: &Scheme, secret: &str) -> Result<(), Problem> {
    let wrong = |detail: &str| Err(Problem::invalid("secret", detail, "leave it out for a new one"));
    if !(16..=bounds::HOOK_SECRET_BYTES).contains(&secret.len()) {
        return wrong("the secret does not have 16 to 256 bytes");
    }
    match scheme {
        Scheme::Standard if signing_key(secret).is_none() => {
            wrong("the secret is not `whsec_` with at least 24 bytes in base64 behind it")
        }
        Scheme::Hmac(scheme) => {
            let names = [("signature_header", &scheme.signature_header), ("id_header", &scheme.id_header)];
            for (field, name) in names {
                if axum::http::HeaderName::try_from(name.as_str()).is_err() {
                    return Err(Problem::invalid(field, format!("`{name}` is no name of a header"), "change it"));
                }
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

fn check_events(events: &[String]) -> Result<(), Problem> {
    if events.len() > bounds::HOOK_EVENTS {
        let detail = format!("there are {} events and may be {}", events.len(), bounds::HOOK_EVENTS);
        return Err(Problem::invalid("events", detail, "leave them out to take all"));
    }
    events.iter().try_for_each(|event| check_text("events", event))
}

fn check_target(target: &HookTarget) -> Result<(), Problem> {
    match target {
        HookTarget::Task(task) => new_task(task).map(drop),
        HookTarget::Signal(signal) => {
            name("name", &signal.name)?;
            name("kind", &signal.kind)?;
            if !signal.key.starts_with('/') {
                let detail = format!("`{}` is no JSON pointer", signal.key);
                return Err(Problem::invalid("key", detail, "begin it with /, such as /data/order"));
            }
            check_text("key", &signal.key)
        }
    }
}

fn new_task(target: &TaskTarget) -> Result<NewTask, Problem> {
    let mut new = NewTask::of(name("kind", &target.kind)?);
    if let Some(queue) = &target.queue {
        new.queue = name("queue", queue)?;
    }
    new.group = target.group.as_deref().map(|group| name("group", group)).transpose()?;
    new.priority = target.priority.map_or(new.priority, Priority);
    Ok(new)
}

async fn delete(call: Call) -> Reply {
    let name = call.parameter("hook");
    if call.server.hooks.find(name).await?.is_none() {
        return Err(Problem::not_found("hook", name, "GET /v1/hooks lists them"));
    }
    call.server.hooks.delete(name).await?;
    no_content()
}

async fn deliver(call: Call) -> Reply {
    if call.server.is_stopping() {
        let problem = Problem::new(Code::Stopping, "the server is stopping", "deliver it again later");
        return Err(problem.retry_after(1));
    }
    let (hook_name, now) = (call.parameter("hook"), call.server.store.clock().now());
    // An unknown name and a wrong signature look alike.
    let found = call.server.hooks.find(hook_name).await?;
    let taken = found.and_then(|hook| verify(&hook, &call.headers, &call.body, now).map(|delivery| (hook, delivery)));
    let Some((hook, delivery)) = taken else {
        let remedy = "sign it with the secret of the hook, within five minutes of its timestamp";
        return Err(Problem::new(Code::CredentialInvalid, "no hook has this name and this signature", remedy));
    };
    let event = delivery.event.as_deref().unwrap_or_default();
    if !hook.events.is_empty() && !hook.events.iter().any(|wanted| wanted == event) {
        return no_content();
    }
    let scope = Arc::new(ChangeScope::new(None, None));
    scope.set_guard(delivery_document(hook_name, &delivery.id, now)?);
    let done = match &hook.target {
        HookTarget::Task(task) => in_scope(Arc::clone(&scope), submit(&call, task, event)).await,
        HookTarget::Signal(target) => in_scope(Arc::clone(&scope), signal(&call, target)).await,
    };
    // The record of the delivery was there already: it had its effect.
    if scope.is_repeated() { no_content() } else { done }
}

async fn submit(call: &Call, target: &TaskTarget, event: &str) -> Reply {
    let mut new = new_task(target)?;
    new.payload = call.body.clone();
    new.tags.set("hook", call.parameter("hook"));
    if !event.is_empty() && event.len() <= onward_store::bounds::TAG_VALUE_BYTES && !event.contains('\0') {
        new.tags.set("hook.event", event);
    }
    let submitted = call.server.engine.submit_all(vec![new]).await?;
    match submitted.first() {
        Some(submitted) => json(&SubmittedBody::from(*submitted)),
        None => no_content(),
    }
}

async fn signal(call: &Call, target: &SignalTarget) -> Reply {
    let body: Value = serde_json::from_slice(&call.body).unwrap_or_default();
    let key = match body.pointer(&target.key) {
        Some(Value::String(key)) => key.clone(),
        Some(Value::Number(key)) => key.to_string(),
        _ => {
            let detail = format!("the body has no text and no number at `{}`", target.key);
            return Err(Problem::invalid("body", detail, "change the hook, or what is sent to it"));
        }
    };
    check_text("body", &key)?;
    let to = Recipient::Key { kind: Name::new(&target.kind)?, key };
    call.server.engine.send(to, &target.name, call.body.clone()).await?;
    no_content()
}
