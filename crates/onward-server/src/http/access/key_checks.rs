//! Checks that the key of an event stream is still valid.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::http::{HeaderMap, Method};
use onward_store::Error;
use tokio::sync::Notify;

use super::actor::{Actor, authenticate};
use crate::http::bounds;
use crate::http::problem::Code;
use crate::http::server::Server;

/// The last check of each credential that has a stream. Streams with one credential share a check,
/// so the store is read at most once for each and [`bounds::KEY_CHECK`], and not at all while
/// nothing is sent.
#[derive(Debug, Default)]
pub(crate) struct KeyChecks {
    checked: Mutex<HashMap<String, Duration>>,
    revoked: Notify,
}

impl KeyChecks {
    /// Notes that a key was revoked or a session ended here. All streams check at once, because the
    /// streams of sessions depend on the key that signed in.
    pub(crate) fn note_revoked(&self) {
        self.checked().clear();
        self.revoked.notify_waiters();
    }

    /// Waits until a key is revoked, or a session ends, at this server.
    pub(crate) async fn revoked(&self) {
        self.revoked.notified().await;
    }

    /// Returns true if the actor of a stream may receive more.
    ///
    /// # Errors
    /// Returns the store's error if the key could not be read.
    pub(crate) async fn is_valid(&self, server: &Server, actor: &Actor, headers: &HeaderMap) -> Result<bool, Error> {
        let clock = server.store.clock();
        if actor.expires_at.is_some_and(|expires| expires <= clock.now()) {
            return Ok(false);
        }
        let now = clock.steady();
        let is_fresh = |checked: &Duration| now < checked.saturating_add(bounds::KEY_CHECK);
        if self.checked().get(actor.credential()).is_some_and(is_fresh) {
            return Ok(true);
        }
        match authenticate(server, &Method::GET, headers).await {
            Ok(_) => {}
            Err(problem) if problem.code == Code::CredentialInvalid => return Ok(false),
            Err(_) => return Err(Error::io("the key of a stream could not be read; connect again")),
        }
        let mut checked = self.checked();
        if checked.len() >= bounds::KEYS_CHECKED {
            checked.retain(|_, checked| is_fresh(checked));
        }
        if checked.len() < bounds::KEYS_CHECKED {
            checked.insert(actor.credential().to_owned(), now);
        }
        Ok(true)
    }

    fn checked(&self) -> MutexGuard<'_, HashMap<String, Duration>> {
        self.checked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
