//! Workloads with messages in one direction.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;
use bench_protocol::{Measurement, Row, Sockets, count_allocations};
use bytes::Bytes;
use tokio::task::JoinHandle;

use crate::meter::Meter;
use crate::system::{Receives, Sends};
use crate::{BATCH, endpoint};

/// The number of messages after which a sender yields.
pub(crate) const BETWEEN_YIELDS: usize = 128;
/// The most messages that are sent or received in one call, in the shape `Many`.
const MOST_AT_ONCE: usize = 512;

/// Returns a receiver and the senders that are connected to it. A message of each sender has
/// arrived.
pub(crate) async fn connected<S: Sends, R: Receives>(sockets: Sockets) -> Result<(Vec<S>, R)> {
    let endpoint = endpoint(sockets.transport)?;
    let mut receiver = R::bind(&endpoint).await?;
    let mut senders = Vec::new();
    for _ in 0..sockets.peers {
        let mut sender = S::connect(&endpoint).await?;
        sender.send(Bytes::from_static(b"first")).await?;
        receiver.recv().await?;
        senders.push(sender);
    }
    Ok((senders, receiver))
}

/// Senders that send until they are stopped.
#[derive(Debug, Default)]
pub(crate) struct Senders {
    is_over: Arc<AtomicBool>,
    tasks: Vec<JoinHandle<()>>,
}

impl Senders {
    pub(crate) fn start<S: Sends>(senders: Vec<S>, payload: &Bytes) -> Self {
        let mut all = Self::default();
        for sender in senders {
            all.tasks.push(tokio::spawn(send(sender, payload.clone(), all.is_over.clone())));
        }
        all
    }

    /// Starts senders that send many messages in one call, if they can.
    fn start_many<S: Sends>(senders: Vec<S>, payload: &Bytes) -> Self {
        let mut all = Self::default();
        for sender in senders {
            all.tasks.push(tokio::spawn(send_many(sender, payload.clone(), all.is_over.clone())));
        }
        all
    }
}

async fn send<S: Sends>(mut sender: S, payload: Bytes, is_over: Arc<AtomicBool>) {
    while !is_over.load(Ordering::Relaxed) {
        for _ in 0..BETWEEN_YIELDS {
            if sender.send(payload.clone()).await.is_err() {
                return;
            }
        }
        tokio::task::yield_now().await;
    }
}

async fn send_many<S: Sends>(mut sender: S, payload: Bytes, is_over: Arc<AtomicBool>) {
    while !is_over.load(Ordering::Relaxed) {
        if sender.send_many(&payload, MOST_AT_ONCE).await.is_err() {
            return;
        }
        tokio::task::yield_now().await;
    }
}

impl Drop for Senders {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

fn payload(row: &Row) -> Bytes {
    Bytes::from(vec![0xCD; row.payload_bytes])
}

/// Runs the shape `Stream`: all sockets send and receive at the same time.
pub(crate) async fn stream<S: Sends, R: Receives>(row: &Row, sockets: Sockets) -> Result<Measurement> {
    let (senders, mut receiver) = connected::<S, R>(sockets).await?;
    let _senders = Senders::start(senders, &payload(row));
    let (mut meter, count) = (Meter::new(row), row.count);
    let receiving = tokio::spawn(async move {
        while meter.next()? {
            for _ in 0..count {
                receiver.recv().await?;
            }
        }
        anyhow::Ok(meter)
    });
    Ok(receiving.await??.messages_per_second())
}

/// Runs the shape `Many`: as `Stream`, with many messages in one call.
pub(crate) async fn many<S: Sends, R: Receives>(row: &Row, sockets: Sockets) -> Result<Measurement> {
    let (senders, mut receiver) = connected::<S, R>(sockets).await?;
    let _senders = Senders::start_many(senders, &payload(row));
    let (mut meter, count) = (Meter::new(row), row.count);
    let receiving = tokio::spawn(async move {
        while meter.next()? {
            let mut received = 0;
            while received < count {
                received += receiver.recv_many(MOST_AT_ONCE.min(count - received)).await?;
            }
        }
        anyhow::Ok(meter)
    });
    Ok(receiving.await??.messages_per_second())
}

/// Runs the shape `Batch`: all out, then all in, by one task that is not on a worker.
pub(crate) async fn batch<S: Sends, R: Receives>(row: &Row, sockets: Sockets) -> Result<Measurement> {
    let (mut senders, mut receiver) = connected::<S, R>(sockets).await?;
    let payload = payload(row);
    let mut meter = Meter::new(row);
    while meter.next()? {
        for _ in 0..row.count / BATCH {
            for index in 0..BATCH {
                let sender = index % senders.len();
                senders[sender].send(payload.clone()).await?;
            }
            for _ in 0..BATCH {
                receiver.recv().await?;
            }
        }
    }
    Ok(meter.messages_per_second())
}

/// Measures the allocations for each message, once buffers have reached their sizes.
pub(crate) async fn allocations<S: Sends, R: Receives>(row: &Row, sockets: Sockets) -> Result<Measurement> {
    let (senders, mut receiver) = connected::<S, R>(sockets).await?;
    let _senders = Senders::start(senders, &payload(row));
    let count = row.count;
    let receiving = tokio::spawn(async move {
        for _ in 0..count {
            receiver.recv().await?;
        }
        let counted = count_allocations();
        for _ in 0..count {
            receiver.recv().await?;
        }
        anyhow::Ok(counted())
    });
    let each = receiving.await?? as f64 / row.count as f64;
    Ok(Measurement::of(each).observed("received", row.count as u64))
}
