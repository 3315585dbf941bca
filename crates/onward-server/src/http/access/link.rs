//! The one-time link with which the first admin signs in.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use onward_store::{Clock, Error};

use super::secret::{SecretHash, new_secret};
use crate::http::bounds;

/// The token of the link. It is valid for [`bounds::LINK_TIME`], and for one use.
#[derive(Debug)]
pub(crate) struct OneTimeLink {
    clock: Arc<dyn Clock>,
    token: Mutex<Option<(SecretHash, Duration)>>,
}

impl OneTimeLink {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, token: Mutex::new(None) }
    }

    /// Issues a token. An earlier token is not valid any more.
    pub(crate) fn issue(&self) -> Result<String, Error> {
        let secret = new_secret()?;
        let until = self.clock.steady().saturating_add(bounds::LINK_TIME);
        *self.token.lock().unwrap_or_else(PoisonError::into_inner) = Some((SecretHash::of(&secret), until));
        Ok(secret)
    }

    /// Uses a token up. Returns false if it is not the token, or its time is over. A wrong token
    /// does not use up the right one.
    pub(crate) fn take(&self, token: &str) -> bool {
        let now = self.clock.steady();
        let mut issued = self.token.lock().unwrap_or_else(PoisonError::into_inner);
        let given = SecretHash::of(token);
        let is_valid = issued.as_ref().is_some_and(|(hash, until)| hash.matches(&given) && now < *until);
        if is_valid {
            *issued = None;
        }
        is_valid
    }
}
