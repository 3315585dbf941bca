//! Webhooks: events of tasks that the server sends to other programs.
//!
//! A follower reads the events and submits one task for each delivery, in the commit that moves its
//! cursor. So several servers may follow: one of them wins each page, and nothing is sent twice or
//! left out. An engine of each server runs these tasks, with retries.

mod address;
mod follower;
mod post;
mod sender;
mod signature;
mod webhook;
mod webhook_store;

pub(crate) use post::{Destination, check_url};
pub(crate) use sender::serve_webhooks;
pub(crate) use signature::{new_signing_secret, signing_key};
pub(crate) use webhook::{EVENTS, StoredWebhook, WebhookBody};
pub(crate) use webhook_store::{Webhooks, new_webhook_id};
