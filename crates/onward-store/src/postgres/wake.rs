//! Hearing of what other processes wrote: by listening, and by looking now and then.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_postgres::{AsyncMessage, Client, NoTls};

use super::error::classified;
use super::store::Shared;
use crate::error::{Error, Result};
use crate::store::Hint;

/// How long to wait until the next try, where no connection can be made.
const PAUSE: Duration = Duration::from_secs(1);

/// How many messages may wait to be read.
const MESSAGES: usize = 1024;

/// The channel of a store's messages.
pub(super) fn channel(schema: &str) -> String {
    format!("onward_{schema}")
}

/// Tells this process of what others wrote, until the store is gone.
pub(super) async fn run(shared: Weak<Shared>) {
    while let Some(store) = shared.upgrade() {
        let poll = store.options.poll;
        if !store.options.listen {
            drop(store);
            return look_now_and_then(&shared, poll).await;
        }
        let outcome = listen(&store).await;
        // Weak from here on, so that nothing here keeps the store open.
        drop(store);
        match outcome {
            Ok((client, messages)) => follow(&shared, &client, messages, poll).await,
            Err(error) => tracing::debug!(%error, "cannot hear of other processes"),
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Looks for changes over a connection of the readers.
async fn look_now_and_then(shared: &Weak<Shared>, poll: Duration) {
    loop {
        tokio::time::sleep(poll).await;
        let Some(shared) = shared.upgrade() else { return };
        let looked = async {
            let client = shared.pool.get().await?;
            let stamp = stamp(&client, &shared).await?;
            client.give_back();
            Ok::<i64, Error>(stamp)
        };
        match looked.await {
            Ok(stamp) => shared.saw(stamp),
            Err(error) => tracing::debug!(%error, "cannot see what other processes wrote"),
        }
    }
}

type Messages = mpsc::Receiver<String>;

/// Follows until the connection breaks or the store is gone.
async fn follow(shared: &Weak<Shared>, client: &Client, mut messages: Messages, poll: Duration) {
    loop {
        let heard = tokio::time::timeout(poll, messages.recv()).await;
        let Some(shared) = shared.upgrade() else { return };
        match heard {
            Ok(Some(message)) => heard_from(&shared, &message),
            Ok(None) => return,
            Err(_) => {
                let Ok(stamp) = stamp(client, &shared).await else { return };
                shared.saw(stamp);
            }
        }
    }
}

async fn listen(shared: &Arc<Shared>) -> Result<(Client, Messages)> {
    let (client, mut connection) = shared.config.connect(NoTls).await.map_err(classified)?;
    let (sender, messages) = mpsc::channel(MESSAGES);
    tokio::spawn(async move {
        while let Some(Ok(message)) = std::future::poll_fn(|context| connection.poll_message(context)).await {
            if let AsyncMessage::Notification(notification) = message {
                // One that finds no room says no more than those before it.
                let _ = sender.try_send(notification.payload().to_owned());
            }
        }
    });
    client.batch_execute(&format!("LISTEN {}", channel(&shared.sql.schema))).await.map_err(classified)?;
    Ok((client, messages))
}

fn heard_from(shared: &Shared, message: &str) {
    let numbers: Vec<u64> = message.split(' ').filter_map(|number| number.parse().ok()).collect();
    if let [node, work, transitions, schedules] = numbers[..]
        && node != shared.node
    {
        shared.others_wrote(Hint { work, transitions, schedules });
    }
}

/// A number that is another one after every write that changes anything.
pub(super) async fn stamp(client: &Client, shared: &Shared) -> Result<i64> {
    let text = "SELECT (SELECT last_value FROM {s}.last_entry) + (SELECT last_value FROM {s}.last_task)";
    let rows = client.query_typed(&shared.sql.text(text), &[]).await.map_err(classified)?;
    rows.first().map(|row| row.get(0)).ok_or_else(|| Error::io("PostgreSQL did not say where the store stands"))
}
