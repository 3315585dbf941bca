//! Details of a failure for programs: a value, as JSON, in the last line of the failure's text. It
//! goes wherever the text goes: into every store, to waiters, and through orchestrations.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::failure::Failure;
use crate::json::encode;
use crate::orchestration::ActivityError;
use crate::submit::TaskError;

const MARK: &str = "\ndetails: ";

impl Failure {
    /// Adds a value for the code that handles the failure, such as an error code. It becomes the
    /// last line of the message, as JSON. A message of more than 8 KiB is cut, and the value is
    /// lost with that. Like every error text it is stored in plain form, even with a
    /// [codec](crate::EngineBuilder::codec).
    ///
    /// ```
    /// use onward::Failure;
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(Serialize, Deserialize, Debug, PartialEq)]
    /// enum Declined { NoMoney, Stolen }
    ///
    /// let failure = Failure::permanent("the card was declined").with_details(&Declined::Stolen);
    /// assert_eq!(failure.details::<Declined>(), Some(Declined::Stolen));
    /// assert_eq!(failure.message(), "the card was declined\ndetails: \"Stolen\"");
    /// ```
    #[must_use]
    pub fn with_details<D: Serialize>(self, details: &D) -> Self {
        match encode(details) {
            Ok(details) => self.appended(MARK, &String::from_utf8_lossy(&details)),
            Err(error) => self.appended("\n", &format!("its details cannot be written as JSON: {error}")),
        }
    }

    /// Returns the value that was added; `None` if there is none, or one of another type.
    #[must_use]
    pub fn details<D: DeserializeOwned>(&self) -> Option<D> {
        read(self.message())
    }
}

impl ActivityError {
    /// Returns the value that was [added](Failure::with_details) to the failure of the activity;
    /// `None` if there is none, or one of another type.
    #[must_use]
    pub fn details<D: DeserializeOwned>(&self) -> Option<D> {
        match self {
            Self::Ended { error, .. } => error.as_deref().and_then(read),
            _ => None,
        }
    }
}

impl TaskError {
    /// Returns the value that was [added](Failure::with_details) to the last failure of the task;
    /// `None` if there is none, or one of another type.
    #[must_use]
    pub fn details<D: DeserializeOwned>(&self) -> Option<D> {
        match self {
            Self::Failed { error, .. } | Self::Dead { error, .. } => read(error),
            _ => None,
        }
    }
}

fn read<D: DeserializeOwned>(message: &str) -> Option<D> {
    let (_, details) = message.rsplit_once(MARK)?;
    serde_json::from_str(details).ok()
}
