//! Schedule providers: sources of schedules that may change, such as a file, a table or a
//! configuration service.

use std::fmt;
use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::{Arc, Mutex as SyncMutex, PoisonError};
use std::time::Duration;

use onward_store::{Clock, Name, NewSchedule, ScheduleSelection, StoreReads, Write};
use tokio::sync::{Mutex, watch};
use tokio_util::sync::CancellationToken;

use super::reconcile::reconcile;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::handlers::Failure;
use crate::store_backoff::StoreBackoff;
use crate::timer;

/// A boxed future of a provider.
type Provided<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A source of schedules. While the engine runs, it keeps the store in agreement with the provider:
/// at the start of the run, and whenever [`changed`](Self::changed) completes.
///
/// A `tokio::sync::watch::Receiver<Vec<NewSchedule>>` is a provider: the owner of the sender sets
/// the schedules.
pub trait ScheduleProvider: Send + 'static {
    /// Returns the complete set of schedules. After an error the schedules stay as they are, and
    /// the engine calls this again after a pause that grows from 50 ms to 5 s.
    fn schedules(&mut self) -> Provided<'_, Result<Vec<NewSchedule>, Failure>>;

    /// Completes when the set may have changed since the last call.
    fn changed(&mut self) -> Provided<'_, ()>;
}

impl ScheduleProvider for watch::Receiver<Vec<NewSchedule>> {
    fn schedules(&mut self) -> Provided<'_, Result<Vec<NewSchedule>, Failure>> {
        let wanted = self.borrow_and_update().clone();
        Box::pin(async { Ok(wanted) })
    }

    fn changed(&mut self) -> Provided<'_, ()> {
        Box::pin(async {
            if watch::Receiver::changed(self).await.is_err() {
                // The sender was dropped, so the set cannot change any more.
                pending().await
            }
        })
    }
}

/// A provider that calls a function at an interval.
struct PolledProvider<F> {
    function: F,
    interval: Duration,
    clock: Arc<dyn Clock>,
}

impl<F, Fut> ScheduleProvider for PolledProvider<F>
where
    F: Fn() -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Vec<NewSchedule>, Failure>> + Send + 'static,
{
    fn schedules(&mut self) -> Provided<'_, Result<Vec<NewSchedule>, Failure>> {
        Box::pin((self.function)())
    }

    fn changed(&mut self) -> Provided<'_, ()> {
        let at = self.clock.steady().saturating_add(self.interval);
        Box::pin(async move { timer::reached(&*self.clock, at).await })
    }
}

/// The providers of an engine.
#[derive(Default)]
pub(crate) struct Providers(SyncMutex<Vec<Registered>>);

/// A registered provider. A run that begins while another one still ends waits for its lock.
#[derive(Clone)]
struct Registered {
    name: Name,
    provider: Arc<Mutex<dyn ScheduleProvider>>,
}

impl fmt::Debug for Providers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Providers").finish_non_exhaustive()
    }
}

/// Providers of schedules. They take effect from the next run.
impl Engine {
    /// Keeps the schedules that belong to the name `provider` in agreement with a provider: new
    /// ones are created, changed ones updated, and missing ones deleted. Schedules that were set by
    /// hand or that belong to other providers are left alone, and a pause stays. Several engines
    /// with the same provider should get the same set; each updates the store when its set changes.
    ///
    /// An invalid schedule is logged, and does not keep the others from being set.
    ///
    /// # Errors
    /// [`is_invalid`](Error::is_invalid) if the name is invalid or a provider of that name exists
    /// already.
    pub fn provide_schedules(&self, provider: impl AsRef<str>, schedules: impl ScheduleProvider) -> Result<&Self> {
        let name = Name::new(provider)?;
        let mut providers = self.inner.providers.0.lock().unwrap_or_else(PoisonError::into_inner);
        if providers.iter().any(|it| it.name == name) {
            return Err(Error::invalid(format!("there are two providers of schedules named `{name}`; rename one")));
        }
        providers.push(Registered { name, provider: Arc::new(Mutex::new(schedules)) });
        drop(providers);
        Ok(self)
    }

    /// Keeps schedules in agreement with a function that is called at the start of a run and then
    /// every `interval`.
    ///
    /// # Errors
    /// The errors of [`provide_schedules`](Self::provide_schedules);
    /// [`is_invalid`](Error::is_invalid) for an interval of zero.
    pub fn provide_schedules_every<F, Fut>(
        &self,
        provider: impl AsRef<str>,
        interval: Duration,
        schedules: F,
    ) -> Result<&Self>
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Vec<NewSchedule>, Failure>> + Send + 'static,
    {
        if interval.is_zero() {
            return Err(Error::invalid("a provider of schedules was to be asked without a pause; give it an interval"));
        }
        let clock = Arc::clone(&self.inner.clock);
        self.provide_schedules(provider, PolledProvider { function: schedules, interval, clock })
    }
}

impl Providers {
    /// Keeps the store in agreement with every provider until the run is over.
    pub(crate) async fn run(&self, engine: &Engine, over: &CancellationToken) {
        let providers = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let follow = providers.iter().map(|provider| over.run_until_cancelled(provider.follow(engine)));
        futures_util::future::join_all(follow).await;
    }
}

impl Registered {
    async fn follow(&self, engine: &Engine) {
        let mut provider = self.provider.lock().await;
        let mut backoff = StoreBackoff::default();
        loop {
            match update_from_provider(engine, &self.name, &mut *provider).await {
                Ok(()) => {
                    backoff.succeeded();
                    provider.changed().await;
                }
                Err(error) => {
                    let name = self.name.as_str();
                    tracing::warn!(provider = name, %error, "schedules could not be updated from their provider; retrying");
                    backoff.wait(&*engine.inner.clock).await;
                }
            }
        }
    }
}

/// Updates the store to the present set of a provider.
async fn update_from_provider(engine: &Engine, name: &Name, provider: &mut dyn ScheduleProvider) -> Result<()> {
    let wanted = provider.schedules().await.map_err(|failure| Error::invalid(failure.to_string()))?;
    let existing = engine.inner.store.schedules(ScheduleSelection::All).await?;
    let changes = reconcile(name, wanted, &existing);
    for schedule in changes.set {
        let called = schedule.name.clone();
        match engine.set_schedule(schedule).await {
            Ok(_) => {}
            // One invalid schedule must not stop the others.
            Err(error) if error.is_invalid() => {
                tracing::warn!(schedule = called.as_str(), provider = name.as_str(), %error, "a schedule cannot be set");
            }
            Err(error) => return Err(error),
        }
    }
    for schedule in changes.delete {
        // A schedule that is already gone needs no deletion.
        match engine.done(Write::DeleteSchedule { schedule }).await {
            Err(error) if !error.is_not_found() => return Err(error),
            _ => {}
        }
    }
    Ok(())
}
