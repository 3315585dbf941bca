//! Measures latencies of senders that send at a fixed rate, with and without a flooding sender.

use std::time::Duration;

use anyhow::Result;
use bench_protocol::{Latencies, Measurement, Row, Shape, Sockets, monotonic_nanoseconds};
use bytes::Bytes;
use tokio::time::{MissedTickBehavior, interval};

use crate::one_way::{Senders, connected};
use crate::system::{Receives, Sends};

/// The first bytes of a flooding sender's messages. Other messages have the time there.
const FLOOD: [u8; 8] = [0; 8];

pub(crate) async fn run<S: Sends, R: Receives>(row: &Row, sockets: Sockets) -> Result<Measurement> {
    let is_flooded = sockets.shape == Shape::Flooded;
    let peers = sockets.peers + usize::from(is_flooded);
    let (mut senders, mut receiver) = connected::<S, R>(Sockets { peers, ..sockets }).await?;
    let flooder = senders.split_off(sockets.peers);
    let _flooder = Senders::start(flooder, &Bytes::from(vec![0; row.payload_bytes]));
    let (rate, bytes) = (row.rate, row.payload_bytes);
    for sender in senders {
        tokio::spawn(send_now_and_then(sender, rate, bytes));
    }
    let (warm_up, count) = (row.count / 10, row.count);
    let receiving = tokio::spawn(async move {
        receive(&mut receiver, warm_up).await?;
        receive(&mut receiver, count).await
    });
    let mut latencies = receiving.await??;
    let value = latencies.percentile(0.99);
    Ok(Measurement::of(value).with_latencies(latencies).observed("received", row.count as u64))
}

/// Sends messages at a fixed rate. Stops when the receiving socket is gone.
async fn send_now_and_then<S: Sends>(mut sender: S, rate: u32, bytes: usize) {
    let mut ticks = interval(Duration::from_secs(1) / rate.max(1));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let mut payload = vec![0; bytes];
        payload[..FLOOD.len()].copy_from_slice(&monotonic_nanoseconds().to_be_bytes());
        if sender.send(payload.into()).await.is_err() {
            return;
        }
    }
}

/// Returns the latencies of `count` messages that are not part of the flood.
async fn receive<R: Receives>(receiver: &mut R, count: usize) -> Result<Latencies> {
    let mut latencies = Latencies::with_capacity(count);
    while latencies.count() < count {
        let message = receiver.recv().await?;
        match R::body(&message).first_chunk() {
            Some(&FLOOD) | None => {}
            Some(sent) => {
                let nanoseconds = monotonic_nanoseconds().saturating_sub(u64::from_be_bytes(*sent));
                latencies.record(Duration::from_nanos(nanoseconds));
            }
        }
    }
    Ok(latencies)
}
