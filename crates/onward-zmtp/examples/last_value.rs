//! Published prices with a cache: a late subscriber gets the last price at once.
//!
//! This is the last value cache of the ZeroMQ guide. A cache between publisher and subscribers
//! keeps the last message of each topic and sends it when it receives a subscription. Its XPUB must
//! be verbose, because otherwise it would receive only the first subscription to a topic.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::collections::HashMap;

use bytes::Bytes;
use onward_zmtp::protocol::Message;
use onward_zmtp::socket::{Endpoint, Error, SocketOptions};
use onward_zmtp::{PubSocket, SubSocket, XpubSocket};

/// The largest number of cached topics, so that a publisher with ever new ones cannot fill the
/// memory.
const TOPICS: usize = 10_000;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let mut publisher = PubSocket::new();
    let prices = publisher.bind("tcp://127.0.0.1:*").await?;
    let subscribers = XpubSocket::with_options(SocketOptions::new().verbose());
    let cached = subscribers.bind("tcp://127.0.0.1:*").await?;
    tokio::spawn(cache(prices, subscribers));

    // The first subscriber proves that a price has passed through the cache.
    let mut early = SubSocket::new();
    early.subscribe("copper")?;
    early.connect(&cached)?;
    let seen = loop {
        publisher.send(Message::from_iter(["copper", "9120"])).await?;
        if let Ok(message) = tokio::time::timeout(std::time::Duration::from_millis(10), early.recv()).await {
            break message?;
        }
    };
    println!("early: {seen:?}");

    // Nothing is published any more, and the late subscriber still gets the price.
    let mut late = SubSocket::new();
    late.subscribe("copper")?;
    late.connect(&cached)?;
    let seen = late.recv().await?;
    println!("late: {seen:?}");
    assert_eq!(seen.frames(), ["copper", "9120"]);
    Ok(())
}

async fn cache(prices: Endpoint, mut subscribers: XpubSocket) -> Result<(), Error> {
    let mut source = SubSocket::new();
    source.subscribe("")?;
    source.connect(prices)?;
    let mut last: HashMap<Bytes, Message> = HashMap::new();
    loop {
        tokio::select! {
            message = source.recv() => {
                let message = message?;
                let topic = message.frames()[0].clone();
                if last.len() < TOPICS || last.contains_key(&topic) {
                    last.insert(topic, message.clone());
                }
                subscribers.send(message).await?;
            }
            notice = subscribers.recv() => {
                let notice = notice?;
                if let [1, topic @ ..] = &notice.frames()[0][..] && let Some(message) = last.get(topic) {
                    subscribers.send(message.clone()).await?;
                }
            }
        }
    }
}
