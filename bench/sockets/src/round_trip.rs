//! Measures a message out and back.

use anyhow::Result;
use bench_protocol::{Latencies, Measurement, Row, Sockets, now};
use bytes::Bytes;

use crate::endpoint;
use crate::system::{Echoes, Receives, Sends};

pub(crate) async fn run<D: Sends + Receives, R: Echoes>(row: &Row, sockets: Sockets) -> Result<Measurement> {
    let endpoint = endpoint(sockets.transport)?;
    let mut router = R::bind(&endpoint).await?;
    let mut dealer = D::connect(&endpoint).await?;
    tokio::spawn(async move { while router.echo().await.is_ok() {} });
    let payload = Bytes::from(vec![0xCD; row.payload_bytes]);
    let (count, repetitions) = (row.count, row.repetitions.max(1));
    let asking = tokio::spawn(async move {
        let mut latencies = Latencies::with_capacity(count * repetitions);
        for repetition in 0..=repetitions {
            for _ in 0..count {
                let sent = now();
                dealer.send(payload.clone()).await?;
                dealer.recv().await?;
                if repetition > 0 {
                    latencies.record(sent.elapsed());
                }
            }
        }
        anyhow::Ok(latencies)
    });
    let mut latencies = asking.await??;
    let value = latencies.percentile(0.5);
    Ok(Measurement::of(value).with_latencies(latencies).observed("received", row.count as u64))
}
