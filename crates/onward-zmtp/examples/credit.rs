//! A pool of workers, each of which grants the server credit for tasks. No task waits in the queue
//! of a busy worker.
//!
//! This is the load balancing of the ZeroMQ guide, with credit. A worker grants the server
//! [`CREDIT`] tasks, and one more with each result, so a slow worker gets fewer. The server keeps a
//! task until its result arrives. When all tasks have been sent and a worker has spare credit, the
//! oldest task without a result is sent again. One of the workers here dies with its tasks, and all
//! tasks are done anyway. A task may be done twice.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::collections::VecDeque;

use bytes::Bytes;
use onward_zmtp::protocol::Message;
use onward_zmtp::socket::{Endpoint, Error};
use onward_zmtp::{DealerSocket, RouterSocket};

const WORKERS: u64 = 3;
const CREDIT: usize = 2;
const TASKS: u64 = 60;
/// The number of the task at whose arrival the fastest worker dies.
const DIES_AT: u64 = 10;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let mut server = RouterSocket::new();
    let endpoint = server.bind("tcp://127.0.0.1:*").await?;
    for speed in 1..=WORKERS {
        tokio::spawn(work(speed, endpoint.clone()));
    }

    let mut tasks = Tasks::new();
    // Contains each worker once for every task that it may be sent.
    let mut credit: VecDeque<Bytes> = VecDeque::new();
    while !tasks.are_done() {
        // Both a result and the message of a new worker grant one credit.
        let mut message = server.recv().await?;
        let Some(worker) = message.pop_front() else { continue };
        tasks.note(&message);
        credit.push_back(worker);
        while let (Some(task), Some(worker)) = (tasks.next(), credit.pop_front()) {
            match server.send(Message::from_iter([worker, task.to_string().into()])).await {
                Ok(()) => tasks.give_out(),
                // The worker is gone, so the next one gets the task.
                Err(error) if error.is_unroutable() => {}
                Err(error) => return Err(error),
            }
        }
    }
    println!("{TASKS} tasks are done");
    Ok(())
}

/// The tasks without a result, in the order in which they are to be sent.
struct Tasks(VecDeque<u64>);

impl Tasks {
    fn new() -> Self {
        Self((0..TASKS).collect())
    }

    fn next(&self) -> Option<u64> {
        self.0.front().copied()
    }

    /// Records that the next task was sent: it moves behind all others.
    fn give_out(&mut self) {
        self.0.rotate_left(1);
    }

    /// Removes the task whose result arrived.
    fn note(&mut self, message: &Message) {
        let done = message.frames().get(1).and_then(|frame| std::str::from_utf8(frame).ok()?.parse().ok());
        self.0.retain(|task| Some(*task) != done);
    }

    fn are_done(&self) -> bool {
        self.0.is_empty()
    }
}

async fn work(speed: u64, server: Endpoint) -> Result<(), Error> {
    let mut socket = DealerSocket::new();
    socket.connect(server)?;
    for _ in 0..CREDIT {
        socket.send("ready").await?;
    }
    for number in 1.. {
        let task = socket.recv().await?;
        if (speed, number) == (WORKERS, DIES_AT) {
            println!("worker {speed} dies");
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(4 - speed)).await;
        let task = task.frames()[0].clone();
        println!("worker {speed}: task {}", String::from_utf8_lossy(&task));
        socket.send(Message::from_iter(["done".into(), task])).await?;
    }
    Ok(())
}
