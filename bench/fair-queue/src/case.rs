//! The measured ways to read a number of messages.

use std::fmt;
use std::hint::black_box;
use std::pin::Pin;
use std::str::FromStr;
use std::task::{Context, Poll, Waker};

use anyhow::{Context as _, Result, bail};
use futures_core::Stream;
use futures_util::stream::SelectAll;
use onward_zmtp::FairQueue;

use crate::source::Endless;

/// The messages in a batch.
const BATCH: usize = 64;

/// A way to read, and the number of sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Case {
    pub(crate) reader: Reader,
    pub(crate) sources: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reader {
    /// Polls of the source, or of the sources in turn, without a queue.
    Bare,
    /// `FairQueue::poll_recv`.
    FairQueue,
    /// `FairQueue::poll_recv_many`.
    Batches,
    /// `SelectAll` of futures-util, the usual alternative.
    SelectAll,
}

const READERS: [(Reader, &str); 4] = [
    (Reader::Bare, "bare"),
    (Reader::FairQueue, "fair_queue"),
    (Reader::Batches, "fair_queue_many"),
    (Reader::SelectAll, "select_all"),
];

impl fmt::Display for Case {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = READERS.iter().find(|(reader, _)| *reader == self.reader).map_or("", |(_, name)| name);
        write!(formatter, "{name}/{}", self.sources)
    }
}

impl FromStr for Case {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let (name, sources) = text.split_once('/').context("a case is READER/SOURCES")?;
        let Some((reader, _)) = READERS.iter().find(|(_, known)| *known == name) else {
            bail!("there is no reader `{name}`");
        };
        Ok(Self { reader: *reader, sources: sources.parse()? })
    }
}

impl Case {
    /// Returns a function that reads the given number of messages, each time from the same sources.
    /// Making it is not part of the measurement.
    pub(crate) fn prepare<S: Endless + 'static>(self) -> Box<dyn FnMut(u64)> {
        // All sources are made before any reader allocates, so that each reader finds them at the
        // same distances in memory. At equal distances the processor prefetches their buffers;
        // otherwise a thousand of them wait for memory.
        let mut sources: Vec<S> = (0..self.sources).map(|_| S::new()).collect();
        match self.reader {
            Reader::Bare => Box::new(move |messages| match &mut sources[..] {
                [source] => single(source, messages),
                sources => single(&mut Rotation { sources, position: 0 }, messages),
            }),
            Reader::FairQueue => {
                let mut queue = queue(sources);
                Box::new(move |messages| single(&mut queue, messages))
            }
            Reader::Batches => {
                let mut queue = queue(sources);
                let mut batch = Vec::with_capacity(BATCH);
                Box::new(move |messages| batches(&mut queue, &mut batch, messages))
            }
            Reader::SelectAll => {
                let mut all: SelectAll<S> = sources.into_iter().collect();
                Box::new(move |messages| single(&mut all, messages))
            }
        }
    }
}

fn queue<S: Endless>(sources: Vec<S>) -> FairQueue<u64, S> {
    let mut queue = FairQueue::new();
    for (key, source) in (0..).zip(sources) {
        // The insert succeeds, because the limit is far above the number of sources.
        let _ = queue.insert(key, source);
    }
    queue
}

/// Sources read in turn, using only an index.
struct Rotation<'a, S> {
    sources: &'a mut [S],
    position: usize,
}

impl<S: Endless> Stream for Rotation<'_, S> {
    type Item = S::Item;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<S::Item>> {
        let position = self.position;
        self.position = if position + 1 == self.sources.len() { 0 } else { position + 1 };
        Pin::new(&mut self.sources[position]).poll_next(context)
    }
}

#[inline(never)]
fn single<S: Stream + Unpin>(stream: &mut S, messages: u64) {
    let mut context = Context::from_waker(Waker::noop());
    let mut received = 0;
    while received < messages {
        if let Poll::Ready(Some(message)) = Pin::new(&mut *stream).poll_next(&mut context) {
            black_box(message);
            received += 1;
        }
    }
}

#[inline(never)]
fn batches<S: Endless>(queue: &mut FairQueue<u64, S>, batch: &mut Vec<(u64, S::Item)>, messages: u64) {
    let mut context = Context::from_waker(Waker::noop());
    let mut received = 0;
    while received < messages {
        if let Poll::Ready(taken) = queue.poll_recv_many(&mut context, batch, BATCH) {
            received += taken as u64;
            black_box(batch.drain(..)).for_each(drop);
        }
    }
}
