//! A broker between clients and workers. Neither side knows how many there are of the other.
//!
//! This is the shared queue of the ZeroMQ guide. Everything runs in one process here. With
//! endpoints of `tcp://` or `ipc://`, each part can be its own process, in any language.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use onward_zmtp::socket::{Endpoint, Error, Proxy};
use onward_zmtp::{DealerSocket, RepSocket, ReqSocket, RouterSocket};

const CLIENTS: usize = 3;
const WORKERS: usize = 2;
const REQUESTS: usize = 5;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let (mut clients, mut workers) = (RouterSocket::new(), DealerSocket::new());
    let for_clients = clients.bind("tcp://127.0.0.1:*").await?;
    let for_workers = workers.bind("tcp://127.0.0.1:*").await?;
    let broker = tokio::spawn(async move { Proxy::new(&mut clients, &mut workers).run().await });

    for number in 0..WORKERS {
        tokio::spawn(work(number, for_workers.clone()));
    }
    let asking: Vec<_> = (0..CLIENTS).map(|number| tokio::spawn(ask(number, for_clients.clone()))).collect();
    let mut answered = 0;
    for client in asking {
        if let Ok(replies) = client.await {
            answered += replies?;
        }
    }
    assert_eq!(answered, CLIENTS * REQUESTS);
    broker.abort();
    Ok(())
}

/// Replies to requests for as long as the program runs.
async fn work(number: usize, broker: Endpoint) -> Result<(), Error> {
    let mut socket = RepSocket::new();
    socket.connect(broker)?;
    loop {
        let request = socket.recv().await?;
        let text = String::from_utf8_lossy(&request.frames()[0]).to_uppercase();
        socket.send(format!("{text} (says worker {number})")).await?;
    }
}

/// Returns the number of requests that got the right reply.
async fn ask(number: usize, broker: Endpoint) -> Result<usize, Error> {
    let mut socket = ReqSocket::new();
    socket.connect(broker)?;
    let mut answered = 0;
    for request in 0..REQUESTS {
        socket.send(format!("request {request} of client {number}")).await?;
        let reply = socket.recv().await?;
        let reply = String::from_utf8_lossy(&reply.frames()[0]);
        println!("{reply}");
        answered += usize::from(reply.starts_with(&format!("REQUEST {request} OF CLIENT {number} (")));
    }
    Ok(answered)
}
