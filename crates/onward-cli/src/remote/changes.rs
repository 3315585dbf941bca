//! Hints of changes, from the stream of a server.

use std::time::Duration;

use onward_client::{Client, MessageStream};
use onward_store::{Hint, NotificationSender, watch};

/// The pause before a stream that ended is opened again.
const PAUSE: Duration = Duration::from_secs(1);

/// The ends of the channels to those who wait for changes.
#[derive(Debug, Clone)]
pub(super) struct Hints {
    pub(super) changes: watch::Sender<Hint>,
    pub(super) notifications: NotificationSender,
}

impl Hints {
    pub(super) fn new() -> Self {
        Self { changes: watch::Sender::new(Hint::default()), notifications: NotificationSender::new() }
    }

    /// Says that anything may have changed.
    fn changed(&self) {
        self.changes.send_modify(|hint| {
            hint.work += 1;
            hint.transitions += 1;
            hint.schedules += 1;
            hint.output += 1;
        });
        self.notifications.notify_missed();
    }

    /// Follows the changes of a server for as long as anything waits for them.
    pub(super) async fn follow(self, client: Client) {
        loop {
            if let Ok(stream) = client.messages("/v1/changes", None).await {
                self.pass_on(stream).await;
            }
            // Waiting callers read again. If the server is gone, their reads report it.
            self.changed();
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn pass_on(&self, mut stream: MessageStream) {
        // The first message comes at once, so no change before the stream is missed.
        while let Ok(Some(message)) = stream.next_message().await {
            match message.event.as_str() {
                "bye" => return,
                _ => self.changed(),
            }
        }
    }
}
