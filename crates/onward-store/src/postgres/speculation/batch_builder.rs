//! The calls of the next transaction: they are collected, and decided as far as that can be, while
//! the server writes the one before it.

use std::future::Future;
use std::pin::Pin;

use tokio::sync::mpsc;

use crate::api::error::Result;
use crate::api::store::Durability;
use crate::api::write::Write;
use crate::bounds;
use crate::postgres::commit::outcome::Mode;
use crate::postgres::commit::writer::Call;
use crate::postgres::commit::writer_state::Last;
use crate::postgres::shared::Shared;
use crate::postgres::speculation::plan::Ahead;
use crate::postgres::working_set::applied::claimed_by;

/// How many writes one transaction takes in, unless a single call has more.
const WRITES: usize = 4096;

/// After how many bytes of payloads and results a transaction takes no further call in: the server
/// takes a gigabyte in one statement.
const BYTES: usize = 64 * 1024 * 1024;

/// Calls, and what is decided of them.
#[derive(Debug)]
pub(in crate::postgres) struct Next {
    arriving: mpsc::Receiver<Call>,
    batch: Batch,
    /// One that could not be decided together with the batch; it begins the next one.
    held_back: Option<Call>,
    ahead: Foresight,
}

/// What can be decided of the batch before its transaction begins.
#[derive(Debug, Default)]
enum Foresight {
    /// It has not been looked at.
    #[default]
    Unknown,
    /// Nothing.
    None,
    Begun(Box<Ahead>),
}

#[derive(Debug, Default)]
struct Batch {
    calls: Vec<Call>,
    writes: usize,
    bytes: usize,
}

impl Batch {
    /// Calls that come together may go in any order. Those that begin with a claim go last: what
    /// stands before a claim can be decided ahead.
    fn push(&mut self, call: Call) {
        self.writes += call.writes.len();
        self.bytes += bytes_of(&call.writes);
        let last_of_others = self.calls.iter().rposition(|other| !begins_with_claim(other));
        let before_claims = last_of_others.map_or(0, |at| at + 1);
        let at = if begins_with_claim(&call) { self.calls.len() } else { before_claims };
        self.calls.insert(at, call);
    }

    fn is_full(&self) -> bool {
        self.calls.len() >= bounds::COMMIT || self.writes >= WRITES || self.bytes >= BYTES
    }

    fn writes(&self) -> Vec<&[Write]> {
        self.calls.iter().map(|call| call.writes.as_slice()).collect()
    }
}

impl Next {
    pub(in crate::postgres) fn new(arriving: mpsc::Receiver<Call>) -> Self {
        Self { arriving, batch: Batch::default(), held_back: None, ahead: Foresight::Unknown }
    }

    /// The next calls, and what is decided of them; `None` if none will come. Waits for the first.
    pub(in crate::postgres) async fn take(&mut self) -> Option<(Vec<Call>, Option<Box<Ahead>>)> {
        if self.batch.calls.is_empty() {
            let first = match self.held_back.take() {
                Some(first) => first,
                None => self.arriving.recv().await?,
            };
            self.batch.push(first);
        }
        let ahead = match std::mem::take(&mut self.ahead) {
            Foresight::Begun(ahead) => Some(ahead),
            Foresight::Unknown | Foresight::None => None,
        };
        // What is decided ahead is decided with exactly these calls.
        while ahead.is_none()
            && !self.batch.is_full()
            && let Some(call) = self.held_back.take().or_else(|| self.arriving.try_recv().ok())
        {
            self.batch.push(call);
        }
        Some((std::mem::take(&mut self.batch).calls, ahead))
    }

    /// What was decided ahead counts on a transaction that has not happened.
    pub(in crate::postgres) fn forget_ahead(&mut self) {
        self.ahead = Foresight::Unknown;
    }

    /// How a transaction is committed. It waits for the disk within the commit where nothing else
    /// is to be done meanwhile, and nobody else would wait for that long; else the next
    /// transaction, or that of another node, need not wait for it.
    pub(in crate::postgres) fn mode(&self, shared: &Shared, holds_up_others: bool) -> Mode {
        if shared.options.durability != Durability::Full {
            return Mode::NeverSynced;
        }
        let is_empty = self.batch.calls.is_empty() && self.held_back.is_none() && self.arriving.is_empty();
        if !holds_up_others && is_empty && shared.is_flushed() { Mode::Synced } else { Mode::SyncedLater }
    }

    /// Waits for what the server says of a transaction, and sees to the next one meanwhile, as it
    /// is to be `after` that. Nothing of it is sent.
    pub(in crate::postgres) async fn prepare_until<T>(
        &mut self,
        shared: &Shared,
        after: &Last,
        mut said: Pin<&mut impl Future<Output = T>>,
    ) -> T {
        loop {
            tokio::select! {
                biased;
                it = &mut said => return it,
                () = self.prepare(shared, after) => {}
            }
        }
    }

    /// Takes a call, or decides a few writes. Waits while there is nothing to be done. Cancel-safe.
    async fn prepare(&mut self, shared: &Shared, after: &Last) {
        if self.batch.calls.is_empty()
            && let Some(call) = self.held_back.take()
        {
            self.batch.push(call);
        }
        if let Foresight::Begun(ahead) = &self.ahead
            && !ahead.is_after(after)
        {
            // Another transaction has come between.
            self.ahead = Foresight::Unknown;
        }
        if self.advance(shared, after) {
            // Between two steps what the server says is heard.
            return tokio::task::yield_now().await;
        }
        if self.held_back.is_some() || self.batch.is_full() {
            return std::future::pending().await;
        }
        match self.arriving.recv().await {
            Some(call) => self.add(after, call),
            None => std::future::pending().await,
        }
    }

    fn add(&mut self, after: &Last, call: Call) {
        let goes_along = match &mut self.ahead {
            Foresight::Begun(ahead) => ahead.takes(after, &call.writes),
            Foresight::Unknown | Foresight::None => true,
        };
        if goes_along {
            self.batch.push(call);
        } else {
            self.held_back = Some(call);
        }
    }

    /// Decides a few writes of what is there, if they are many. Answers whether it did.
    fn advance(&mut self, shared: &Shared, after: &Last) -> bool {
        // What is wrong with a call shows, and is told, when it is decided in its transaction.
        let decided = self.try_to_advance(shared, after).unwrap_or(None);
        if decided.is_none() {
            self.ahead = Foresight::None;
        }
        decided == Some(true)
    }

    /// `None` if nothing of the batch can be decided ahead.
    fn try_to_advance(&mut self, shared: &Shared, after: &Last) -> Result<Option<bool>> {
        let calls = self.batch.writes();
        match &mut self.ahead {
            Foresight::None => Ok(None),
            Foresight::Begun(ahead) => ahead.advance(&calls),
            Foresight::Unknown if self.batch.writes < 2 * bounds::DECIDED_AT_ONCE => Ok(Some(false)),
            Foresight::Unknown => {
                let Some(mut ahead) = Ahead::begin(shared, after)? else { return Ok(None) };
                if !calls.iter().all(|call| ahead.takes(after, call)) {
                    return Ok(None);
                }
                self.ahead = Foresight::Begun(ahead);
                Ok(Some(true))
            }
        }
    }
}

fn begins_with_claim(call: &Call) -> bool {
    call.writes.first().is_some_and(|write| claimed_by(std::slice::from_ref(write)) > 0)
}

fn bytes_of(writes: &[Write]) -> usize {
    let one = |write: &Write| match write {
        Write::Submit(new) => new.payload.len(),
        Write::Complete { result, .. } => result.as_ref().map_or(0, bytes::Bytes::len),
        Write::All(writes) => bytes_of(writes),
        _ => 0,
    };
    writes.iter().map(one).sum()
}
