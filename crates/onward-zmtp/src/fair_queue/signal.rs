//! The signal with which other tasks notify the reader: one word for the reader to load, and one
//! bit for each source.

use std::sync::Arc;
use std::task::{Wake, Waker};

use super::sync::{AtomicU64, AtomicWaker, Ordering};

/// The number of sources whose bits share a word.
const BITS: usize = u64::BITS as usize;
/// The number of bits of [`Signal::raised`] that stand for words of sources. The two bits above
/// them are [`WAKE`] and [`MAILBOX`].
const GROUPS: usize = 62;
const WAKE: u64 = 1 << 62;
const MAILBOX: u64 = 1 << 63;

/// The word that the reader loads before each message to see whether it has other work.
///
/// Invariant: a task that turns `raised` from zero to nonzero wakes the reader. A task that finds
/// it nonzero leaves the wake-up to the task that raised it first.
///
/// The reader registers its waker before its last load. It therefore sees everything raised before
/// the load, and is woken by everything raised after.
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

    /// Returns everything raised so far and resets the word.
    pub(super) fn take(&self) -> Raised {
        Raised(self.raised.swap(0, Ordering::AcqRel))
    }

    /// Registers the waker of the reader for everything raised from now on.
    pub(super) fn register(&self, reader: &Waker) {
        self.reader.register(reader);
    }

    /// Notifies the reader that the mailbox has something for it.
    pub(super) fn raise_mailbox(&self) {
        self.raise(MAILBOX);
    }

    fn raise(&self, bit: u64) {
        // Only the first bit wakes the reader. It takes the later ones with the same swap.
        if self.raised.fetch_or(bit, Ordering::AcqRel) == 0 {
            self.reader.wake();
        }
    }
}

/// A waker for the reader's task that notifies it without a change.
impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        self.raise(WAKE);
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.raise(WAKE);
    }
}

/// The bits that the reader took from the signal.
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

/// The bits of up to 64 sources. A bit is set from the wake-up of its source until the reader takes
/// it.
///
/// Invariant: a task that sets the first bit of a word raises the word's group afterwards. The
/// reader takes the group before the word. A set bit is therefore always followed by a load of its
/// word.
struct Word {
    woken: AtomicU64,
    group: u64,
    signal: Arc<Signal>,
}

/// The waker of one slot. It sets the slot's bit.
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

/// The wake-up bits of all slots, by slot index.
pub(super) struct WokenSlots {
    signal: Arc<Signal>,
    words: Vec<Arc<Word>>,
}

impl WokenSlots {
    pub(super) fn new(signal: Arc<Signal>) -> Self {
        Self { signal, words: Vec::new() }
    }

    /// Returns the waker of a slot. After a wake-up, [`Self::take`] yields `index`.
    pub(super) fn waker(&mut self, index: usize) -> Waker {
        while self.words.len() <= index / BITS {
            let group = 1 << (self.words.len() % GROUPS);
            self.words.push(Arc::new(Word { woken: AtomicU64::new(0), group, signal: self.signal.clone() }));
        }
        Waker::from(Arc::new(SlotWaker { word: self.words[index / BITS].clone(), bit: 1 << (index % BITS) }))
    }

    /// Calls `found` with each index that was woken since the last call and whose group is in
    /// `raised`.
    pub(super) fn take(&self, raised: Raised, mut found: impl FnMut(usize)) {
        for group in (0..GROUPS.min(self.words.len())).filter(|group| raised.has_group(*group)) {
            // Words that are `GROUPS` apart share a group, so the signal fits any number of them.
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
