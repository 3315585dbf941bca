//! Lists, which the server returns in pages.

use std::collections::VecDeque;

use futures_core::Stream;
use futures_util::stream;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::client::Client;
use crate::error::Result;
use crate::http::{Request, encoded};

/// The items of a list. The next page is read when the items of the one before are used up.
#[derive(Debug)]
pub struct Pages<T> {
    client: Client,
    /// The path with the query, without a cursor.
    path: String,
    items: VecDeque<T>,
    position: Position,
}

#[derive(Debug)]
enum Position {
    Start,
    After(String),
    End,
}

#[derive(Deserialize)]
struct Page<T> {
    items: VecDeque<T>,
    #[serde(default)]
    next: Option<String>,
}

impl<T: DeserializeOwned> Pages<T> {
    pub(crate) fn new(client: Client, path: String) -> Self {
        Self { client, path, items: VecDeque::new(), position: Position::Start }
    }

    /// Returns the next item; `None` after the last. The future may be dropped without losing an
    /// item.
    ///
    /// # Errors
    /// Returns the errors of [`Client::send`].
    pub async fn next(&mut self) -> Result<Option<T>> {
        loop {
            if let Some(item) = self.items.pop_front() {
                return Ok(Some(item));
            }
            let path = match &self.position {
                Position::Start => self.path.clone(),
                Position::After(cursor) => {
                    let separator = if self.path.contains('?') { '&' } else { '?' };
                    format!("{}{separator}cursor={}", self.path, encoded(cursor))
                }
                Position::End => return Ok(None),
            };
            let page: Page<T> = self.client.send(Request::get(path)).await?.json()?;
            self.items = page.items;
            self.position = page.next.map_or(Position::End, Position::After);
        }
    }

    /// Returns the items as a stream, which ends after the first error.
    pub fn into_stream(self) -> impl Stream<Item = Result<T>> {
        stream::try_unfold(self, |mut pages| async move { Ok(pages.next().await?.map(|item| (item, pages))) })
    }
}
