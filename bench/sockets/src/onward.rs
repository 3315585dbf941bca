//! Our sockets, on a runtime of two workers.

use std::time::{Duration, Instant};

use anyhow::Result;
use bytes::Bytes;
use onward_zmtp::protocol::Message;
use onward_zmtp::socket::kind::{Dealer, Pull, Push, Receives, Router, Sends};
use onward_zmtp::{DealerSocket, RouterSocket, Socket};

use crate::row::{Shape, Workload};

/// How many messages go between two looks at the clock.
const STEP: u64 = 1024;
const MOST_AT_ONCE: usize = 512;

/// Messages a second, or microseconds for a round trip.
pub fn measure(workload: Workload, time: Duration) -> Result<Option<f64>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let value = match (workload.shape, workload.pair) {
            (Shape::RoundTrip, _) => round_trip(workload.bytes, time).await?,
            (Shape::Batch, "push_pull") => batch::<Push, Pull>(workload.bytes, time).await?,
            (Shape::Batch, _) => batch::<Dealer, Router>(workload.bytes, time).await?,
            (shape, "push_pull") => stream::<Push, Pull>(workload.bytes, time, shape == Shape::Many).await?,
            (shape, _) => stream::<Dealer, Router>(workload.bytes, time, shape == Shape::Many).await?,
        };
        Ok(Some(value))
    })
}

async fn pair<S: Sends, R: Receives>() -> Result<(Socket<S>, Socket<R>)> {
    let (mut sender, mut receiver) = (Socket::<S>::new(), Socket::<R>::new());
    sender.connect(receiver.bind("ipc://@bench-onward-zmtp").await?)?;
    sender.send("first").await?;
    receiver.recv().await?;
    Ok((sender, receiver))
}

async fn stream<S: Sends, R: Receives>(bytes: usize, time: Duration, many: bool) -> Result<f64> {
    let (mut sender, mut receiver) = pair::<S, R>().await?;
    let payload = Bytes::from(vec![0xCD; bytes]);
    let sending = tokio::spawn(async move { while sender.send(payload.clone()).await.is_ok() {} });
    let receiving = tokio::spawn(async move {
        let (start, mut received) = (Instant::now(), 0);
        let mut messages = Vec::with_capacity(MOST_AT_ONCE);
        while start.elapsed() < time {
            let mut step = 0;
            while step < STEP {
                if many {
                    step += receiver.recv_many(&mut messages, MOST_AT_ONCE).await? as u64;
                    messages.clear();
                } else {
                    receiver.recv().await?;
                    step += 1;
                }
            }
            received += step;
        }
        anyhow::Ok(received as f64 / start.elapsed().as_secs_f64())
    });
    let value = receiving.await?;
    sending.abort();
    value
}

async fn batch<S: Sends, R: Receives>(bytes: usize, time: Duration) -> Result<f64> {
    let (mut sender, mut receiver) = pair::<S, R>().await?;
    let payload = Bytes::from(vec![0xCD; bytes]);
    let (start, mut received) = (Instant::now(), 0);
    while start.elapsed() < time {
        for _ in 0..STEP {
            sender.send(payload.clone()).await?;
        }
        for _ in 0..STEP {
            receiver.recv().await?;
        }
        received += STEP;
    }
    Ok(received as f64 / start.elapsed().as_secs_f64())
}

async fn round_trip(bytes: usize, time: Duration) -> Result<f64> {
    let (mut dealer, router) = (DealerSocket::new(), RouterSocket::new());
    dealer.connect(router.bind("ipc://@bench-onward-zmtp").await?)?;
    let (mut answers, mut questions) = router.split();
    let echo = tokio::spawn(async move {
        while let Ok(message) = questions.recv().await {
            if answers.send(message).await.is_err() {
                break;
            }
        }
    });
    let payload = Message::from(Bytes::from(vec![0xCD; bytes]));
    let mut trips = Vec::new();
    let start = Instant::now();
    while start.elapsed() < time {
        let sent = Instant::now();
        dealer.send(payload.clone()).await?;
        dealer.recv().await?;
        trips.push(sent.elapsed());
    }
    echo.abort();
    trips.sort();
    Ok(trips[trips.len() / 2].as_secs_f64() * 1e6)
}
