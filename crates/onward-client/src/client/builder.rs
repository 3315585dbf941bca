//! The settings of a client.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::bounds;
use crate::client::core::Client;
use crate::error::{Error, Result};
use crate::http::{Credential, Server, Transport};

const DEFAULT_URL: &str = "http://127.0.0.1:7070";

/// The settings of a [`Client`].
#[derive(Debug, Clone)]
pub struct ClientBuilder {
    url: Option<String>,
    key: Option<String>,
    key_file: Option<PathBuf>,
    timeout: Duration,
    retry_for: Duration,
}

impl Default for ClientBuilder {
    fn default() -> Self {
        Self { url: None, key: None, key_file: None, timeout: bounds::TIMEOUT, retry_for: bounds::RETRY_FOR }
    }
}

impl ClientBuilder {
    /// Sets the address of the server, such as `https://onward.example.org`. Default: the variable
    /// `ONWARD_URL`, or `http://127.0.0.1:7070`.
    #[must_use]
    pub fn url(self, url: impl Into<String>) -> Self {
        Self { url: Some(url.into()), ..self }
    }

    /// Sets the key. Default: the variable `ONWARD_KEY`; or else, for a server on this machine, the
    /// key file.
    #[must_use]
    pub fn key(self, key: impl Into<String>) -> Self {
        Self { key: Some(key.into()), ..self }
    }

    /// Sets the key file that a server keeps beside its SQLite store. Default: that of the store
    /// that the variable `ONWARD_STORE` names, or of `onward.db`.
    #[must_use]
    pub fn key_file(self, path: impl Into<PathBuf>) -> Self {
        Self { key_file: Some(path.into()), ..self }
    }

    /// Sets the longest time for the response to one attempt, without the time for which the server
    /// was asked to wait. Default: [`bounds::TIMEOUT`].
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// Sets the time for which a request is sent again. Zero means one attempt. Default:
    /// [`bounds::RETRY_FOR`].
    #[must_use]
    pub fn retry_for(self, time: Duration) -> Self {
        Self { retry_for: time, ..self }
    }

    /// Creates the client. It connects with its first request.
    ///
    /// # Errors
    /// Returns an error if the address is none, the key has characters that no key has, the time
    /// limit is zero, or the system has no certificates for `https`.
    pub fn build(self) -> Result<Client> {
        if self.timeout.is_zero() {
            return Err(Error::invalid("the timeout is zero; allow at least some milliseconds"));
        }
        let url = self.url.clone().or_else(|| variable("ONWARD_URL"));
        let server = Server::parse(url.as_deref().unwrap_or(DEFAULT_URL))?;
        let credential = self.credential(&server)?;
        let transport = Transport::new(server, credential, self.timeout, self.retry_for);
        Ok(Client { transport: Arc::new(transport) })
    }

    fn credential(&self, server: &Server) -> Result<Credential> {
        if let Some(key) = &self.key {
            return Credential::of_key(key);
        }
        if let Some(path) = &self.key_file {
            return Ok(Credential::File(path.clone()));
        }
        if let Some(key) = variable("ONWARD_KEY") {
            return Credential::of_key(&key);
        }
        Ok(if server.is_local() { Credential::File(default_key_file()) } else { Credential::None })
    }
}

/// Returns a variable that is set and not empty.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Returns the key file of the store that the environment names.
fn default_key_file() -> PathBuf {
    let store = variable("ONWARD_STORE").filter(|store| !store.starts_with("http"));
    let store = store.unwrap_or_else(|| "onward.db".to_owned());
    let path = store.strip_prefix("sqlite:").unwrap_or(&store);
    format!("{}.serve-key", path.strip_prefix("//").unwrap_or(path)).into()
}
