//! PLAIN (RFC 24): a user name and a password in clear text.

use bytes::Bytes;
use zeroize::Zeroizing;

use super::local_side::LocalSide;
use super::negotiation::{Finished, Step, nothing_to_decide, unexpected};
use super::security::{Credentials, Password};
use crate::protocol::bounds::PLAIN_FIELD_BYTES;
use crate::protocol::error::{Error, Result};
use crate::protocol::wire::command::{push_short, take_short};
use crate::protocol::wire::output::Output;

/// The client's side: `HELLO` →, ← `WELCOME`, `INITIATE` →, ← `READY`.
#[derive(Debug)]
pub(crate) enum PlainClient {
    Welcome,
    Ready,
}

impl PlainClient {
    pub(super) fn start(username: &str, password: &Password, output: &mut Output) -> Result<Self> {
        if username.len() > PLAIN_FIELD_BYTES {
            return Err(Error::misuse(format!(
                "a user name of PLAIN has at most {PLAIN_FIELD_BYTES} bytes, not {}; use a shorter one",
                username.len()
            )));
        }
        let mut hello = Zeroizing::new(Vec::with_capacity(2 + 2 * PLAIN_FIELD_BYTES));
        push_short(&mut hello, username.as_bytes());
        push_short(&mut hello, password.as_bytes());
        output.push_command("HELLO", &hello);
        Ok(Self::Welcome)
    }

    pub(super) fn command(
        &mut self,
        name: &[u8],
        data: &[u8],
        local: &LocalSide<'_>,
        output: &mut Output,
    ) -> Result<Step> {
        match (&*self, name) {
            (Self::Welcome, b"WELCOME") if data.is_empty() => {
                output.push_command("INITIATE", &local.metadata());
                *self = Self::Ready;
                Ok(Step::Wait)
            }
            (Self::Ready, b"READY") => {
                let metadata = local.read(data)?;
                Ok(Step::Finished(Box::new(Finished { metadata, client_key: None, cipher: None, ready: None })))
            }
            (Self::Welcome, _) => Err(unexpected(name, "an empty WELCOME")),
            (Self::Ready, _) => Err(unexpected(name, "READY")),
        }
    }
}

/// The server's side of the same exchange, by the step that it waits for.
#[derive(Debug)]
pub(crate) enum PlainServer {
    Hello,
    Decision,
    Initiate,
}

impl PlainServer {
    pub(super) fn new() -> Self {
        Self::Hello
    }

    pub(super) fn command(&mut self, name: &[u8], data: &[u8], local: &LocalSide<'_>) -> Result<Step> {
        match (&*self, name) {
            (Self::Hello, b"HELLO") => {
                let credentials = parse_hello(data)?;
                *self = Self::Decision;
                Ok(Step::Authenticate(credentials))
            }
            (Self::Initiate, b"INITIATE") => {
                let (metadata, ready) = (local.read(data)?, Some(local.metadata()));
                Ok(Step::Finished(Box::new(Finished { metadata, client_key: None, cipher: None, ready })))
            }
            (Self::Hello, _) => Err(unexpected(name, "HELLO")),
            (Self::Decision | Self::Initiate, _) => Err(unexpected(name, "INITIATE")),
        }
    }

    pub(super) fn accept(&mut self, output: &mut Output) -> Result<Step> {
        let Self::Decision = self else { return Err(nothing_to_decide()) };
        output.push_command("WELCOME", &[]);
        *self = Self::Initiate;
        Ok(Step::Wait)
    }
}

fn parse_hello(data: &[u8]) -> Result<Credentials> {
    let fields = || {
        let (username, rest) = take_short(data)?;
        let (password, rest) = take_short(rest)?;
        rest.is_empty().then_some((username, password))
    };
    let Some((username, password)) = fields() else {
        return Err(Error::malformed("the peer's HELLO is not a user name and a password"));
    };
    Ok(Credentials::Plain { username: Bytes::copy_from_slice(username), password: Password::new(password)? })
}
