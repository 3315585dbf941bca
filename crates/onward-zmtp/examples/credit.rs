//! A pool of workers, each of which says how much work it can take: nothing waits in the queue of a worker that is busy.
//!
//! The load balancing of the ZeroMQ guide, with credit: a worker grants the server so many tasks, and one more with each result. So a slow
//! worker gets less, and one that dies loses no more than its credit, which the server gives to others when it is told that the peer is gone.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::collections::VecDeque;

use bytes::Bytes;
use onward_zmtp::protocol::Message;
use onward_zmtp::socket::{Endpoint, Error};
use onward_zmtp::{DealerSocket, RouterSocket};

const WORKERS: u64 = 3;
const CREDIT: usize = 2;
const TASKS: u64 = 60;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let mut server = RouterSocket::new();
    let endpoint = server.bind("tcp://127.0.0.1:*").await?;
    for speed in 1..=WORKERS {
        tokio::spawn(work(speed, endpoint.clone()));
    }

    let mut tasks: VecDeque<u64> = (0..TASKS).collect();
    // Who may be given a task, once for each.
    let mut credit: VecDeque<Bytes> = VecDeque::new();
    let mut done = 0;
    while done < TASKS {
        // A result, or a worker that has come: each is a credit.
        let mut message = server.recv().await?;
        let Some(worker) = message.pop_front() else { continue };
        done += u64::from(message.frames()[0] == "done");
        credit.push_back(worker);
        while let (Some(task), Some(worker)) = (tasks.front(), credit.pop_front()) {
            match server.send(Message::from_iter([worker, task.to_string().into()])).await {
                Ok(()) => drop(tasks.pop_front()),
                // The worker is gone; another has the task.
                Err(error) if error.is_unroutable() => {}
                Err(error) => return Err(error),
            }
        }
    }
    println!("{done} tasks are done");
    Ok(())
}

async fn work(speed: u64, server: Endpoint) -> Result<(), Error> {
    let mut socket = DealerSocket::new();
    socket.connect(server)?;
    for _ in 0..CREDIT {
        socket.send("ready").await?;
    }
    loop {
        let task = socket.recv().await?;
        tokio::time::sleep(std::time::Duration::from_millis(4 - speed)).await;
        println!("worker {speed}: task {}", String::from_utf8_lossy(&task.frames()[0]));
        socket.send("done").await?;
    }
}
