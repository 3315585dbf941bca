//! What a failure says to programs, beside its text for people: a value, as JSON, in the last line
//! of the text. So it goes wherever the text goes: into every store, to whoever waits, through
//! orchestrations.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::failure::Failure;
use crate::json::encode;
use crate::orchestration::ActivityError;
use crate::submit::TaskError;

const MARK: &str = "\ndetails: ";

impl Failure {
    /// The same with a value for whoever deals with it: a code, a type of errors. It is the last
    /// line of the message, as JSON; a message of more than 8 KiB is cut, and it with that. Like
    /// every error text it is kept as it is, also where there is a
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

    /// The value that it was given; `None` if it has none, or one of another type.
    #[must_use]
    pub fn details<D: DeserializeOwned>(&self) -> Option<D> {
        read(self.message())
    }
}

impl ActivityError {
    /// The value that the failure of the activity was [given](Failure::with_details); `None` if it
    /// has none, or one of another type.
    #[must_use]
    pub fn details<D: DeserializeOwned>(&self) -> Option<D> {
        match self {
            Self::Ended { error, .. } => error.as_deref().and_then(read),
            _ => None,
        }
    }
}

impl TaskError {
    /// The value that the last failure of the task was [given](Failure::with_details); `None` if it
    /// has none, or one of another type.
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
