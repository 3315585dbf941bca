//! The rows of sockets on libzmq. Its calls block, so each task is a thread.

mod library;

use anyhow::{Result, bail};
use bench_protocol::{Latencies, Measurement, Pair, Request, Row, Shape, now, run};
use bench_sockets::{BATCH, Meter, clear, endpoint, sockets};

use crate::library::{Context, Kind, Socket};

fn main() -> Result<()> {
    run("libzmq", work)
}

fn work(request: &Request) -> Result<Measurement> {
    let row = &request.row;
    let wanted = sockets(row)?;
    let context = Context::new();
    let endpoint = endpoint(wanted.transport)?;
    let (sends, receives, frames) = match wanted.pair {
        Pair::PushPull => (Kind::Push, Kind::Pull, 1),
        Pair::DealerRouter => (Kind::Dealer, Kind::Router, 2),
    };
    let receiver = context.socket(receives, &endpoint)?;
    let mut senders = Vec::new();
    for _ in 0..wanted.peers {
        let sender = context.socket(sends, &endpoint)?;
        sender.send(b"first")?;
        receiver.receive(frames)?;
        senders.push(sender);
    }
    let measurement = match wanted.shape {
        Shape::Stream => stream(row, senders, &receiver, frames),
        Shape::Batch => batch(row, &senders[0], &receiver, frames),
        Shape::RoundTrip => round_trip(row, &senders[0], receiver),
        shape => bail!("libzmq has no program for {shape:?}"),
    };
    clear();
    measurement
}

fn stream(row: &Row, senders: Vec<Socket>, receiver: &Socket, frames: usize) -> Result<Measurement> {
    for sender in senders {
        let payload = vec![0xCD; row.payload_bytes];
        // The thread ends with the process.
        std::thread::spawn(move || while sender.send(&payload).is_ok() {});
    }
    let mut meter = Meter::new(row);
    while meter.next()? {
        (0..row.count).try_for_each(|_| receiver.receive(frames))?;
    }
    Ok(meter.messages_per_second())
}

fn batch(row: &Row, sender: &Socket, receiver: &Socket, frames: usize) -> Result<Measurement> {
    let payload = vec![0xCD; row.payload_bytes];
    let mut meter = Meter::new(row);
    while meter.next()? {
        for _ in 0..row.count / BATCH {
            (0..BATCH).try_for_each(|_| sender.send(&payload))?;
            (0..BATCH).try_for_each(|_| receiver.receive(frames))?;
        }
    }
    Ok(meter.messages_per_second())
}

fn round_trip(row: &Row, dealer: &Socket, router: Socket) -> Result<Measurement> {
    let payload = vec![0xCD; row.payload_bytes];
    std::thread::spawn(move || while router.echo().is_ok() {});
    let count = row.count * row.repetitions.max(1);
    let mut latencies = Latencies::with_capacity(count);
    for index in 0..row.count + count {
        let sent = now();
        dealer.send(&payload)?;
        dealer.receive(1)?;
        if index >= row.count {
            latencies.record(sent.elapsed());
        }
    }
    let value = latencies.percentile(0.5);
    Ok(Measurement::of(value).with_latencies(latencies).observed("received", row.count as u64))
}
