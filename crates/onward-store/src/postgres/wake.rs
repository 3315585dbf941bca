//! Notifications about the writes of other processes: by `LISTEN`, and by polling.

use std::sync::Weak;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_postgres::AsyncMessage;

use crate::api::error::{Error, Result};
use crate::api::store::Hint;
use crate::postgres::connect::connection::{Address, OwnedConnection, ServerConnection};
use crate::postgres::connect::error::classified;
use crate::postgres::connect::error::nothing_said;
use crate::postgres::shared::Shared;
use crate::postgres::sql::Sql;

/// The pause before the next attempt to connect.
const PAUSE: Duration = Duration::from_secs(1);

/// The most notifications that wait to be read.
const MESSAGES: usize = 1024;

/// Returns the name of a store's notification channel.
pub(super) fn channel(schema: &str) -> String {
    format!("onward_{schema}")
}

/// The time after which a test notification counts as lost.
const TEST: Duration = Duration::from_secs(2);

/// The pause after a change that polling found, if the process does not listen.
const SOON: Duration = Duration::from_millis(100);

/// The factor by which a listening process polls less often.
const WHERE_LISTENING: u32 = 6;

/// Notifies this process of other processes' writes until the store is dropped. Without a
/// `listener` it polls.
pub(in crate::postgres) async fn run(shared: Weak<Shared>, listener: Option<Listener>, poll: Duration) {
    let Some(mut listener) = listener else { return poll_for_changes(&shared, poll).await };
    loop {
        follow(&shared, listener, poll * WHERE_LISTENING).await;
        listener = loop {
            tokio::time::sleep(PAUSE).await;
            let Some(shared) = shared.upgrade() else { return };
            match Listener::again(&shared).await {
                Ok(listener) => break listener,
                Err(error) => tracing::debug!(%error, "cannot hear of other processes"),
            }
        };
    }
}

/// Returns the pause until the next poll.
fn pause_after(pause: Duration, has_changed: bool, poll: Duration) -> Duration {
    if has_changed { SOON.min(poll) } else { (pause * 2).min(poll) }
}

/// Polls over a reader's connection: soon after a change, and half as often after each poll without
/// one.
async fn poll_for_changes(shared: &Weak<Shared>, poll: Duration) {
    let mut pause = SOON.min(poll);
    loop {
        tokio::time::sleep(pause).await;
        let Some(shared) = shared.upgrade() else { return };
        let looked = async {
            let client = shared.pool.get().await?;
            let stamp = look(&client, &shared).await?;
            client.give_back();
            Ok::<i64, Error>(stamp)
        };
        match looked.await {
            Ok(stamp) => pause = pause_after(pause, shared.record_stamp(stamp), poll),
            Err(error) => tracing::debug!(%error, "cannot see what other processes wrote"),
        }
    }
}

/// A connection that receives notifications.
pub(super) struct Listener {
    client: OwnedConnection,
    messages: mpsc::Receiver<String>,
}

impl Listener {
    /// Listens, and verifies it with a notification from another connection. Returns `None` if that
    /// does not arrive, as behind a pooler.
    pub(in crate::postgres) async fn new(
        address: &Address,
        sql: &Sql,
        node: u64,
        other: &OwnedConnection,
    ) -> Result<Option<Self>> {
        let mut listener = Self::connect(address, sql).await?;
        if listener.test(sql, node, other).await? {
            return Ok(Some(listener));
        }
        listener.client.batch_execute(&format!("UNLISTEN {}", channel(&sql.schema))).await.map_err(classified)?;
        tracing::warn!("no messages come through to this process, as behind a pooler; it looks for changes instead");
        Ok(None)
    }

    /// Listens again after the connection broke, and checks what was written in between.
    async fn again(shared: &Shared) -> Result<Self> {
        let listener = Self::connect(&shared.address, &shared.sql).await?;
        shared.record_stamp(stamp(&listener.client, shared).await?);
        // This process may have writes with an unknown outcome from the time when the server was
        // away. They count as missed.
        shared.notify_unknown_change();
        shared.inbox.notify_one();
        Ok(listener)
    }

    /// Connects and listens. A tokio task drives the connection and collects its notifications.
    async fn connect(address: &Address, sql: &Sql) -> Result<Self> {
        let (client, mut connection) = address.connect().await?;
        let (sender, messages) = mpsc::channel(MESSAGES);
        tokio::spawn(async move {
            while let Some(Ok(message)) = std::future::poll_fn(|context| connection.poll_message(context)).await {
                if let AsyncMessage::Notification(notification) = message {
                    // A notification that finds the channel full adds nothing to those in it.
                    let _ = sender.try_send(notification.payload().to_owned());
                }
            }
        });
        let client = OwnedConnection::new(client);
        client.batch_execute(&format!("LISTEN {}", channel(&sql.schema))).await.map_err(classified)?;
        Ok(Self { client, messages })
    }

    /// Returns true if a notification from another connection arrives. One from this connection
    /// would not prove it: it arrives with the reply even behind a pooler.
    pub(super) async fn test(&mut self, sql: &Sql, node: u64, other: &OwnedConnection) -> Result<bool> {
        let test = format!("NOTIFY {}, '{}'", channel(&sql.schema), message(node, Hint::default()));
        other.batch_execute(&test).await.map_err(classified)?;
        Ok(tokio::time::timeout(TEST, self.messages.recv()).await.is_ok_and(|message| message.is_some()))
    }
}

/// The sender's number in a notification that every process acts on, including the sender. A
/// caller's transaction sends it, because the process does not learn if that transaction commits.
pub(super) const NO_NODE: u64 = 0;

/// The notification for rows in the inbox and for completions.
const INBOX: &str = "inbox";

/// Returns a notification's text.
pub(super) fn message(node: u64, hint: Hint) -> String {
    format!("{node} {} {} {} {}", hint.work, hint.transitions, hint.schedules, hint.output)
}

/// Handles notifications, and polls seldom, until the connection breaks or the store is dropped.
async fn follow(shared: &Weak<Shared>, mut listener: Listener, poll: Duration) {
    loop {
        let received = tokio::time::timeout(poll, listener.messages.recv()).await;
        let Some(shared) = shared.upgrade() else { return };
        match received {
            Ok(Some(message)) => received_from(&shared, &message),
            Ok(None) => return,
            Err(_) => {
                let Ok(stamp) = look(&listener.client, &shared).await else { return };
                shared.record_stamp(stamp);
            }
        }
    }
}

/// Handles one notification. Those of this process and malformed ones are ignored.
fn received_from(shared: &Shared, message: &str) {
    if message == INBOX {
        return shared.inbox.notify_one();
    }
    let numbers: Vec<u64> = message.split(' ').filter_map(|number| number.parse().ok()).collect();
    if let [node, work, transitions, schedules, output] = numbers[..]
        && node != shared.node
    {
        let hint = Hint { work, transitions, schedules, output };
        match [work, transitions, schedules] {
            // Output ends no task, so no receiver has missed an end.
            [0, 0, 0] if output > 0 => shared.hint(hint),
            [0, 0, 0] => {}
            _ => shared.others_wrote(hint),
        }
    }
}

/// Returns the [stamp], and requests that the inbox is emptied if it has rows. It is one statement,
/// because an idle process sends nothing else.
async fn look(client: &OwnedConnection, shared: &Shared) -> Result<i64> {
    if !shared.sees_inbox.load(Ordering::Relaxed) {
        return stamp(client, shared).await;
    }
    let text = format!(
        "{STAMP}, EXISTS (SELECT 1 FROM {{s}}.inbox WHERE error IS NULL) OR EXISTS (SELECT 1 FROM {{s}}.completion)"
    );
    let rows = client.query_typed(&shared.sql.text(&text), &[]).await.map_err(classified)?;
    let row = rows.first().ok_or_else(nothing_said)?;
    if row.try_get(1).map_err(classified)? {
        shared.inbox.notify_one();
    }
    row.try_get(0).map_err(classified)
}

/// The query for the [stamp].
const STAMP: &str = "SELECT (SELECT last_value FROM {s}.last_entry) + (SELECT last_value FROM {s}.last_task)";

/// Returns a number that differs after every write that changes a task.
pub(super) async fn stamp(client: &ServerConnection<'_>, shared: &Shared) -> Result<i64> {
    let rows = client.query_typed(&shared.sql.text(STAMP), &[]).await.map_err(classified)?;
    rows.first().map(|row| row.get(0)).ok_or_else(nothing_said)
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLL: Duration = Duration::from_secs(5);

    #[test]
    fn looks_that_find_nothing_become_half_as_frequent_each_time_up_to_the_longest_pause() {
        let pauses = std::iter::successors(Some(SOON), |pause| Some(pause_after(*pause, false, POLL)));
        let milliseconds: Vec<u128> = pauses.take(8).map(|pause| pause.as_millis()).collect();
        assert_eq!(milliseconds, [100, 200, 400, 800, 1600, 3200, 5000, 5000]);
    }

    #[test]
    fn a_look_that_finds_a_change_is_followed_by_one_soon() {
        assert_eq!(pause_after(POLL, true, POLL), SOON);
        let shorter = SOON / 2;
        assert_eq!(pause_after(shorter, true, shorter), shorter);
    }
}
