//! How other tasks get the reader's attention: one word that the reader looks at, and a bit for each source.

use std::sync::Arc;
use std::task::{Wake, Waker};

use super::sync::{AtomicU64, AtomicWaker, Ordering};

/// Sources whose bits share a word.
const BITS: usize = u64::BITS as usize;
/// Bits of [`Signal::raised`] that stand for words of sources; the two above them have meanings of their own.
const GROUPS: usize = 62;
const NUDGE: u64 = 1 << 62;
const MAILBOX: u64 = 1 << 63;

/// What the reader looks at before each message: is there anything to attend to?
///
/// Invariant: whoever turns `raised` from zero to something else wakes the reader; whoever finds it raised already leaves that to
/// the one who raised it. The reader registers its waker before it looks for the last time, so that it sees what was raised
/// before, and is woken by what is raised after.
pub(super) struct Signal {
    raised: AtomicU64,
    reader: AtomicWaker,
}

impl Signal {
    pub(super) fn new() -> Self {
        Self { raised: AtomicU64::new(0), reader: AtomicWaker::new() }
    }

    #[inline]
    pub(super) fn is_raised(&self) -> bool {
        self.raised.load(Ordering::Acquire) != 0
    }

    /// Takes everything raised so far.
    pub(super) fn take(&self) -> Raised {
        Raised(self.raised.swap(0, Ordering::AcqRel))
    }

    /// Says who is to be woken by what is raised from now on.
    pub(super) fn register(&self, reader: &Waker) {
        self.reader.register(reader);
    }

    /// Says that there is something in the mailbox.
    pub(super) fn raise_mailbox(&self) {
        self.raise(MAILBOX);
    }

    fn raise(&self, bit: u64) {
        if self.raised.fetch_or(bit, Ordering::AcqRel) == 0 {
            self.reader.wake();
        }
    }
}

/// As a waker, the signal wakes whichever task reads, and says nothing of the reason.
impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        self.raise(NUDGE);
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.raise(NUDGE);
    }
}

/// What was raised, as the reader took it.
#[derive(Clone, Copy)]
pub(super) struct Raised(u64);

impl Raised {
    pub(super) fn has_mailbox(self) -> bool {
        self.0 & MAILBOX != 0
    }

    fn has_group(self, group: usize) -> bool {
        self.0 & (1 << group) != 0
    }
}

/// The bits of up to 64 sources. A bit is set while its source has been woken and the reader has not noticed yet.
///
/// Invariant: whoever sets the first bit of a word raises the word's group afterwards; the reader takes the group before the word.
/// So a bit that is set is always followed by a look at its word.
struct Word {
    woken: AtomicU64,
    group: u64,
    signal: Arc<Signal>,
}

/// The waker of one slot: it sets the slot's bit.
struct SlotWaker {
    word: Arc<Word>,
    bit: u64,
}

impl Wake for SlotWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.word.woken.fetch_or(self.bit, Ordering::AcqRel) == 0 {
            self.word.signal.raise(self.word.group);
        }
    }
}

/// The bits of all slots, by the slots' indexes.
pub(super) struct WokenSlots {
    signal: Arc<Signal>,
    words: Vec<Arc<Word>>,
}

impl WokenSlots {
    pub(super) fn new(signal: Arc<Signal>) -> Self {
        Self { signal, words: Vec::new() }
    }

    /// A waker that has `index` given by [`Self::take`] after it was used.
    pub(super) fn waker(&mut self, index: usize) -> Waker {
        while self.words.len() <= index / BITS {
            let group = 1 << (self.words.len() % GROUPS);
            self.words.push(Arc::new(Word { woken: AtomicU64::new(0), group, signal: self.signal.clone() }));
        }
        Waker::from(Arc::new(SlotWaker { word: self.words[index / BITS].clone(), bit: 1 << (index % BITS) }))
    }

    /// Calls `found` with each index that was woken since it was last taken, provided that `raised` tells of it.
    pub(super) fn take(&self, raised: Raised, mut found: impl FnMut(usize)) {
        for group in (0..GROUPS.min(self.words.len())).filter(|group| raised.has_group(*group)) {
            for position in (group..self.words.len()).step_by(GROUPS) {
                let mut bits = self.words[position].woken.swap(0, Ordering::AcqRel);
                while bits != 0 {
                    found(position * BITS + bits.trailing_zeros() as usize);
                    bits &= bits - 1;
                }
            }
        }
    }
}
