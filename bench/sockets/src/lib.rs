//! The workloads of the rows of sockets (`M/…`), for any sockets on tokio.
//!
//! A program defines its sockets ([`System`]) and passes its rows to [`run`].

mod meter;
mod one_way;
mod paced;
mod round_trip;
mod system;

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use bench_protocol::{Measurement, Pair, Request, Row, Shape, Sockets, Transport};

pub use meter::Meter;
pub use system::{Echoes, Receives, Sends, Socket, System};

/// The number of messages that go out, and then in, in the shape `Batch`.
pub const BATCH: usize = 1024;

/// Runs a row of sockets on a runtime with two workers.
///
/// # Errors
/// Returns an error if the row has no sockets, or if the system fails.
pub fn run<S: System>(request: &Request) -> Result<Measurement> {
    let row = &request.row;
    let sockets = sockets(row)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let measurement = runtime.block_on(async {
        match sockets.pair {
            Pair::PushPull => one_way::<S::Push, S::Pull>(row, sockets).await,
            Pair::DealerRouter if sockets.shape == Shape::RoundTrip => {
                round_trip::run::<S::Dealer, S::Router>(row, sockets).await
            }
            Pair::DealerRouter => one_way::<S::Dealer, S::Router>(row, sockets).await,
        }
    });
    // The shutdown of a system is not measured, so the program does not wait for it.
    runtime.shutdown_background();
    clear();
    measurement
}

async fn one_way<S: Sends, R: Receives>(row: &Row, sockets: Sockets) -> Result<Measurement> {
    match sockets.shape {
        Shape::Stream => one_way::stream::<S, R>(row, sockets).await,
        Shape::Many => one_way::many::<S, R>(row, sockets).await,
        Shape::Batch => one_way::batch::<S, R>(row, sockets).await,
        Shape::Allocations => one_way::allocations::<S, R>(row, sockets).await,
        Shape::Paced | Shape::Flooded => paced::run::<S, R>(row, sockets).await,
        Shape::RoundTrip => anyhow::bail!("row {}: a round trip is one of DEALER and ROUTER", row.name),
    }
}

/// Returns the sockets of a row.
///
/// # Errors
/// Returns an error if the row has no sockets.
pub fn sockets(row: &Row) -> Result<Sockets> {
    row.sockets.with_context(|| format!("row {} says nothing of sockets", row.name))
}

/// Returns the endpoint of this process.
///
/// # Errors
/// Returns an error if the system has no free port.
pub fn endpoint(transport: Transport) -> Result<String> {
    Ok(match transport {
        Transport::Ipc => format!("ipc://{}", file().display()),
        Transport::Tcp => format!("tcp://{}", std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?),
    })
}

/// Returns the path of this process's Unix stream.
fn file() -> PathBuf {
    std::env::temp_dir().join(format!("bench-sockets-{}", std::process::id()))
}

/// Removes the file that some systems leave.
pub fn clear() {
    // The removal fails if the system has removed the file itself.
    let _ = std::fs::remove_file(file());
}
