//! Stores in front of other stores.

use std::fmt;
use std::sync::Arc;

use crate::api::notification::NotificationReceiver;
use crate::api::outcome::Outcome;
use crate::api::read::{Read, ReadReply};
use crate::api::store::{Changes, Store, StoreFuture, StoreInfo};
use crate::api::write::Write;
use crate::clock::Clock;

/// A store in front of another store, for example one that counts, delays or fails calls.
///
/// An implementation overrides the methods that it changes. All others are passed to
/// [`inner`](Self::inner). Every implementation is a [`Store`].
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU64, Ordering};
///
/// use onward_store::{StoreFuture, Outcome, Store, Write};
///
/// #[derive(Debug)]
/// struct Counting {
///     inner: Arc<dyn Store>,
///     calls: AtomicU64,
/// }
///
/// impl onward_store::StoreDecorator for Counting {
///     fn inner(&self) -> &dyn Store {
///         &*self.inner
///     }
///
///     fn apply(&self, writes: Vec<Write>) -> StoreFuture<'_, Vec<Outcome>> {
///         self.calls.fetch_add(1, Ordering::Relaxed);
///         self.inner.apply(writes)
///     }
/// }
///
/// fn behind_it(store: Counting) -> Arc<dyn Store> {
///     Arc::new(store)
/// }
/// ```
///
/// The methods have the names of the methods of [`Store`], so bring only one of the two
/// traits into scope. [`Store::as_any`] is not passed on, because operations of one backend
/// would bypass the decorator.
pub trait StoreDecorator: fmt::Debug + Send + Sync + 'static {
    /// Returns the inner store. Each call that is passed on asks once.
    fn inner(&self) -> &dyn Store;

    /// Applies writes, as [`Store::apply`]; by default the inner store does.
    fn apply(&self, writes: Vec<Write>) -> StoreFuture<'_, Vec<Outcome>> {
        self.inner().apply(writes)
    }

    /// Reads, as [`Store::read`]; by default the inner store does.
    fn read(&self, read: Read) -> StoreFuture<'_, ReadReply> {
        self.inner().read(read)
    }

    /// Returns hints, as [`Store::changes`]; by default those of the inner store.
    fn changes(&self) -> Changes {
        self.inner().changes()
    }

    /// Returns the ends of tasks, as [`Store::notifications`]; by default those of the inner store.
    fn notifications(&self) -> NotificationReceiver {
        self.inner().notifications()
    }

    /// Returns the clock, as [`Store::clock`]; by default that of the inner store.
    fn clock(&self) -> Arc<dyn Clock> {
        self.inner().clock()
    }

    /// Returns the best size of a claim, as [`Store::claim_size`]; by default that of the inner
    /// store.
    fn claim_size(&self) -> usize {
        self.inner().claim_size()
    }

    /// Describes the store, as [`Store::info`]; by default the inner one.
    fn info(&self) -> StoreInfo {
        self.inner().info()
    }
}

impl<D: StoreDecorator> Store for D {
    fn apply(&self, writes: Vec<Write>) -> StoreFuture<'_, Vec<Outcome>> {
        StoreDecorator::apply(self, writes)
    }

    fn read(&self, read: Read) -> StoreFuture<'_, ReadReply> {
        StoreDecorator::read(self, read)
    }

    fn changes(&self) -> Changes {
        StoreDecorator::changes(self)
    }

    fn notifications(&self) -> NotificationReceiver {
        StoreDecorator::notifications(self)
    }

    fn clock(&self) -> Arc<dyn Clock> {
        StoreDecorator::clock(self)
    }

    fn claim_size(&self) -> usize {
        StoreDecorator::claim_size(self)
    }

    fn info(&self) -> StoreInfo {
        StoreDecorator::info(self)
    }
}
