//! The store that encodes payloads.

use std::sync::Arc;

use super::payload_codec::PayloadCodec;
use super::{outcomes, reads, writes};
use crate::api::error::Result;
use crate::api::notification::NotificationReceiver;
use crate::api::outcome::Outcome;
use crate::api::read::{Read, ReadReply};
use crate::api::store::{Store, StoreFuture};
use crate::api::task::Lease;
use crate::api::write::Write;
use crate::bounds;
use crate::decorator::StoreDecorator;

/// A store that encodes the payloads of another store with a [`PayloadCodec`].
///
/// Every program that uses the store needs a matching codec. A program that cannot decode a claimed
/// task releases it for [`bounds::UNREAD_PAUSE`], so that others can claim it.
///
/// The limit on payloads applies to encoded payloads. A transaction of a handler on the store's own
/// connection would bypass the codec and is rejected.
#[derive(Debug, Clone)]
pub struct CodecStore {
    inner: Arc<dyn Store>,
    codec: Arc<dyn PayloadCodec>,
}

impl CodecStore {
    /// Creates a store that encodes the payloads of `inner` with `codec`.
    #[must_use]
    pub fn new(inner: Arc<dyn Store>, codec: Arc<dyn PayloadCodec>) -> Self {
        Self { inner, codec }
    }

    /// Releases tasks whose payloads cannot be decoded. They pause, so that no worker claims them
    /// again at once.
    async fn give_back(&self, leases: Vec<Lease>) -> Result<()> {
        if leases.is_empty() {
            return Ok(());
        }
        let after = bounds::UNREAD_PAUSE;
        self.inner.apply(leases.into_iter().map(|lease| Write::Release { lease, after }).collect()).await?;
        Ok(())
    }
}

impl StoreDecorator for CodecStore {
    fn inner(&self) -> &dyn Store {
        &*self.inner
    }

    fn apply(&self, mut writes: Vec<Write>) -> StoreFuture<'_, Vec<Outcome>> {
        Box::pin(async move {
            writes.iter_mut().try_for_each(|write| writes::encode(&*self.codec, write))?;
            let mut done = self.inner.apply(writes).await?;
            let mut unread = Vec::new();
            for outcome in &mut done {
                unread.extend(outcomes::decode(&*self.codec, outcome)?);
            }
            // The inner store has committed these claims, so the undecodable tasks must be
            // released.
            self.give_back(unread).await?;
            Ok(done)
        })
    }

    fn notifications(&self) -> NotificationReceiver {
        let codec = Arc::clone(&self.codec);
        self.inner
            .notifications()
            .mapped(Arc::new(move |notification| outcomes::decode_notification(&*codec, notification)))
    }

    fn read(&self, read: Read) -> StoreFuture<'_, ReadReply> {
        Box::pin(async move {
            let mut reply = self.inner.read(read).await?;
            reads::decode(&*self.codec, &mut reply)?;
            Ok(reply)
        })
    }
}
