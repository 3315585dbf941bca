//! The keys of an issuer as it publishes them, kept for a while.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::discovery::Metadata;
use super::keys::KeySet;
use super::options::IssuerOptions;
use crate::http::bounds;
use crate::http::outgoing::{Outgoing, fetch};

/// The documents that an issuer publishes.
#[derive(Debug, Clone, Default)]
pub(super) struct Published {
    pub(super) keys: Arc<KeySet>,
    /// The discovery document; `None` if it is not needed.
    pub(super) metadata: Option<Arc<Metadata>>,
}

/// The documents of an issuer, read when they are needed.
///
/// They are read again after [`bounds::ISSUER_FRESH`], and for a key that they do not have, but at
/// most once in [`bounds::ISSUER_PAUSE`]: tokens with invented keys cause no further requests. If
/// the issuer cannot be reached, the documents before count for [`bounds::ISSUER_STALE`].
#[derive(Debug, Default)]
pub(super) struct KeySource {
    state: Mutex<State>,
    /// Held while the documents are read, so that requests at the same time share one reading.
    reading: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct State {
    published: Published,
    /// The time of the last documents.
    read_at: Option<Duration>,
    /// The time of the last attempt.
    tried_at: Option<Duration>,
}

impl KeySource {
    /// Returns the documents. `suffices` returns false for documents without the wanted key.
    pub(super) async fn get(
        self: &Arc<Self>,
        options: &Arc<IssuerOptions>,
        clock: Times,
        suffices: impl Fn(&Published) -> bool,
    ) -> Option<Published> {
        let now = clock.now;
        let present = self.present(now);
        let has_wanted = present.as_ref().is_some_and(&suffices);
        if !self.is_due(now, has_wanted) {
            return present;
        }
        let (source, options) = (Arc::clone(self), Arc::clone(options));
        if has_wanted {
            // The documents still count, so no request waits for the new ones.
            tokio::spawn(async move { source.read(&options, clock).await });
            return present;
        }
        self.read(&options, clock).await;
        self.present(now)
    }

    /// Reads the documents, unless another request has just done so.
    async fn read(&self, options: &IssuerOptions, clock: Times) {
        let before = self.state().tried_at;
        let _reading = self.reading.lock().await;
        {
            let mut state = self.state();
            if state.tried_at != before {
                return;
            }
            state.tried_at = Some(clock.now);
        }
        match read(options, clock.time).await {
            Ok(published) => {
                let mut state = self.state();
                (state.published, state.read_at) = (published, Some(clock.now));
            }
            Err(fault) => tracing::warn!(issuer = options.url, fault, "the keys of the issuer could not be read"),
        }
    }

    fn present(&self, now: Duration) -> Option<Published> {
        let state = self.state();
        let is_kept = state.read_at.is_some_and(|at| now < at.saturating_add(bounds::ISSUER_STALE));
        is_kept.then(|| state.published.clone())
    }

    fn is_due(&self, now: Duration, has_wanted: bool) -> bool {
        let state = self.state();
        let passed = |at: Option<Duration>, time| at.is_none_or(|at| now >= at.saturating_add(time));
        (!has_wanted || passed(state.read_at, bounds::ISSUER_FRESH)) && passed(state.tried_at, bounds::ISSUER_PAUSE)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The present time, and the time that reading a document may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    pub(super) now: Duration,
    pub(super) time: Duration,
}

async fn read(options: &IssuerOptions, time: Duration) -> Result<Published, String> {
    let needs_metadata = options.keys_url.is_none() || options.sign_in.is_some();
    let metadata = match needs_metadata {
        true => Some(Metadata::fetch(&options.url, time).await?),
        false => None,
    };
    let found = metadata.as_ref().map(|it| it.jwks_uri.as_str());
    let url = options.keys_url.as_deref().or(found).ok_or_else(|| "there is no address of the keys".to_owned())?;
    let fetched = fetch(Outgoing::get(url, bounds::ISSUER_BYTES, time)).await?;
    if !fetched.status.is_success() {
        return Err(format!("{url}: it has the status {}", fetched.status));
    }
    let keys = KeySet::read(&fetched.body).map_err(|fault| format!("{url}: {fault}"))?;
    Ok(Published { keys: Arc::new(keys), metadata: metadata.map(Arc::new) })
}
