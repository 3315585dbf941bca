//! A pipeline in one direction: a source pushes work, workers do it, and a sink collects the
//! results.
//!
//! These are the ventilator, workers and sink of the ZeroMQ guide. Work goes to the workers in
//! turn. A worker whose queue is full is passed over, and when all queues are full the source
//! waits.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::time::Duration;

use onward_zmtp::socket::{Endpoint, Error, HighWaterMark, SocketOptions};
use onward_zmtp::{PullSocket, PushSocket};

const WORKERS: usize = 4;
const PIECES: u64 = 10_000;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let source = PushSocket::with_options(
        SocketOptions::new().send_high_water_mark(HighWaterMark::messages(100)).linger(Duration::from_secs(60)),
    );
    let from_source = source.bind("tcp://127.0.0.1:*").await?;
    let mut sink = PullSocket::new();
    let to_sink = sink.bind("tcp://127.0.0.1:*").await?;

    for _ in 0..WORKERS {
        tokio::spawn(square(from_source.clone(), to_sink.clone()));
    }
    let producing = tokio::spawn(produce(source));

    let mut sum = 0;
    for _ in 0..PIECES {
        sum += number(&sink.recv().await?.frames()[0]);
    }
    println!("the squares of the numbers below {PIECES} add up to {sum}");
    assert_eq!(sum, (PIECES - 1) * PIECES * (2 * PIECES - 1) / 6);
    if let Ok(outcome) = producing.await {
        outcome?;
    }
    Ok(())
}

async fn produce(mut source: PushSocket) -> Result<(), Error> {
    for piece in 0..PIECES {
        source.send(piece.to_be_bytes().to_vec()).await?;
    }
    // Waits until everything is sent.
    source.close().await;
    Ok(())
}

async fn square(source: Endpoint, sink: Endpoint) -> Result<(), Error> {
    let (mut work, mut results) = (PullSocket::new(), PushSocket::new());
    work.connect(source)?;
    results.connect(sink)?;
    loop {
        let piece = number(&work.recv().await?.frames()[0]);
        results.send((piece * piece).to_be_bytes().to_vec()).await?;
    }
}

/// Returns the number in a frame. Another program may have sent anything, so a frame that is no
/// number counts as zero.
fn number(frame: &[u8]) -> u64 {
    frame.try_into().map_or(0, u64::from_be_bytes)
}
