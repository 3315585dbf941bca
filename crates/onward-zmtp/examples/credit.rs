//! A pool of workers, each of which says how much work it can take: nothing waits in the queue of a
//! worker that is busy.
//!
//! The load balancing of the ZeroMQ guide, with credit: a worker grants the server so many tasks,
//! and one more with each result. So a slow worker gets less. A task is kept until its result is
//! there: when all have been given out and some worker has credit to spare, the oldest that is
//! without a result goes out once more. One of the workers here dies with what it has, and all
//! tasks are done all the same; a task may be done twice.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::collections::VecDeque;

use bytes::Bytes;
use onward_zmtp::protocol::Message;
use onward_zmtp::socket::{Endpoint, Error};
use onward_zmtp::{DealerSocket, RouterSocket};

const WORKERS: u64 = 3;
const CREDIT: usize = 2;
const TASKS: u64 = 60;
/// The fastest worker has done so many tasks when it gets its last one.
const DIES_AT: u64 = 10;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let mut server = RouterSocket::new();
    let endpoint = server.bind("tcp://127.0.0.1:*").await?;
    for speed in 1..=WORKERS {
        tokio::spawn(work(speed, endpoint.clone()));
    }

    let mut tasks = Tasks::new();
    // Who may be given a task, once for each.
    let mut credit: VecDeque<Bytes> = VecDeque::new();
    while !tasks.are_done() {
        // A result, or a worker that has come: each is a credit.
        let mut message = server.recv().await?;
        let Some(worker) = message.pop_front() else { continue };
        tasks.note(&message);
        credit.push_back(worker);
        while let (Some(task), Some(worker)) = (tasks.next(), credit.pop_front()) {
            match server.send(Message::from_iter([worker, task.to_string().into()])).await {
                Ok(()) => tasks.give_out(),
                // The worker is gone; another has the task.
                Err(error) if error.is_unroutable() => {}
                Err(error) => return Err(error),
            }
        }
    }
    println!("{TASKS} tasks are done");
    Ok(())
}

/// Those without a result, in the order in which they are to be given out.
struct Tasks(VecDeque<u64>);

impl Tasks {
    fn new() -> Self {
        Self((0..TASKS).collect())
    }

    fn next(&self) -> Option<u64> {
        self.0.front().copied()
    }

    /// The next has been given out: all others come before it is again.
    fn give_out(&mut self) {
        self.0.rotate_left(1);
    }

    /// Takes a task away whose result has come.
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
