//! The client of CURVE (RFC 26).

use std::fmt;

use crypto_box::SalsaBox;

use super::boxes::{
    COOKIE_BYTES, HELLO_PADDING, HELLO_PLAIN, VERSION, WELCOME_BYTES, array, long_nonce, open, seal, shared,
    short_nonce,
};
use super::cipher::{self, Cipher};
use super::keys::{KeyPair, PublicKey, SecretKey};
use crate::protocol::error::{Error, Result};
use crate::protocol::mechanism::entropy::Entropy;
use crate::protocol::mechanism::local_side::LocalSide;
use crate::protocol::mechanism::negotiation::{Finished, Step, unexpected};
use crate::protocol::wire::output::Output;

/// The client's side: `HELLO` →, ← `WELCOME`, `INITIATE` →, ← `READY`.
pub(crate) struct CurveClient {
    server: PublicKey,
    keys: KeyPair,
    transient: KeyPair,
    vouch_nonce: [u8; 16],
    sent: u64,
    received: u64,
    state: State,
}

enum State {
    /// Has the box between the local transient key and the server's long-term key.
    AwaitsWelcome(SalsaBox),
    /// Has the box between the two transient keys.
    AwaitsReady(SalsaBox),
    Done,
}

impl CurveClient {
    pub(in crate::protocol::mechanism) fn start(
        server: PublicKey,
        keys: &KeyPair,
        entropy: &Entropy,
        output: &mut Output,
    ) -> Result<Self> {
        let transient = KeyPair::from(SecretKey::from_bytes(entropy.transient_key()));
        let mut sent = 0;
        let number = cipher::next(&mut sent)?;
        let to_server = shared(server, transient.secret())?;
        let mut hello = VERSION.to_vec();
        hello.extend_from_slice(&[0; HELLO_PADDING]);
        hello.extend_from_slice(transient.public().as_bytes());
        hello.extend_from_slice(&number.to_be_bytes());
        hello.extend_from_slice(&seal(&to_server, &short_nonce(b"CurveZMQHELLO---", number), &HELLO_PLAIN)?);
        output.push_command("HELLO", &hello);
        let state = State::AwaitsWelcome(to_server);
        Ok(Self { server, keys: keys.clone(), transient, vouch_nonce: entropy.nonce(), sent, received: 0, state })
    }

    pub(in crate::protocol::mechanism) fn awaits_welcome(&self) -> bool {
        matches!(self.state, State::AwaitsWelcome(_))
    }

    pub(in crate::protocol::mechanism) fn command(
        &mut self,
        name: &[u8],
        data: &[u8],
        local: &LocalSide<'_>,
        output: &mut Output,
    ) -> Result<Step> {
        // The state stays `Done` unless a handler sets the next one, so a failed handshake cannot
        // go further.
        match (std::mem::replace(&mut self.state, State::Done), name) {
            (State::AwaitsWelcome(to_server), b"WELCOME") => self.welcome(&to_server, data, local, output),
            (State::AwaitsReady(between), b"READY") => self.ready(between, data, local),
            (State::AwaitsWelcome(_), _) => Err(unexpected(name, "WELCOME")),
            (State::AwaitsReady(_) | State::Done, _) => Err(unexpected(name, "READY")),
        }
    }

    fn welcome(
        &mut self,
        to_server: &SalsaBox,
        data: &[u8],
        local: &LocalSide<'_>,
        output: &mut Output,
    ) -> Result<Step> {
        if data.len() != WELCOME_BYTES {
            return Err(Error::malformed("the peer's WELCOME has the wrong length"));
        }
        let nonce = long_nonce(b"WELCOME-", &array(data, 0));
        let plain = open(to_server, &nonce, &data[16..], "WELCOME")?;
        // Only the owner of the server's long-term key can make a box that opens here, so the
        // server is authentic from here on.
        let server_transient = PublicKey::from_bytes(array(&plain, 0));
        let cookie: [u8; COOKIE_BYTES] = array(&plain, 32);
        self.initiate(server_transient, &cookie, local, output)?;
        Ok(Step::Wait)
    }

    fn initiate(
        &mut self,
        server_transient: PublicKey,
        cookie: &[u8; COOKIE_BYTES],
        local: &LocalSide<'_>,
        output: &mut Output,
    ) -> Result<()> {
        // Only transient keys encrypt from here on. A long-term key that is stolen later does not
        // decrypt this connection.
        let between = shared(server_transient, self.transient.secret())?;
        let number = cipher::next(&mut self.sent)?;
        let mut plain = self.keys.public().as_bytes().to_vec();
        plain.extend_from_slice(&self.vouch(server_transient)?);
        plain.extend_from_slice(&local.metadata());
        let mut initiate = cookie.to_vec();
        initiate.extend_from_slice(&number.to_be_bytes());
        initiate.extend_from_slice(&seal(&between, &short_nonce(b"CurveZMQINITIATE", number), &plain)?);
        output.push_command("INITIATE", &initiate);
        self.state = State::AwaitsReady(between);
        Ok(())
    }

    /// Returns the vouch. It proves that the owner of the local long-term key made the local
    /// transient key for this server.
    fn vouch(&self, server_transient: PublicKey) -> Result<Vec<u8>> {
        let plain = [*self.transient.public().as_bytes(), *self.server.as_bytes()].concat();
        let sealed =
            seal(&shared(server_transient, self.keys.secret())?, &long_nonce(b"VOUCH---", &self.vouch_nonce), &plain)?;
        Ok([&self.vouch_nonce[..], &sealed].concat())
    }

    fn ready(&mut self, between: SalsaBox, data: &[u8], local: &LocalSide<'_>) -> Result<Step> {
        let Some((number, sealed)) = data.split_first_chunk::<8>() else {
            return Err(Error::malformed("the peer's READY is too short"));
        };
        let number = u64::from_be_bytes(*number);
        cipher::advance_to(&mut self.received, number)?;
        let plain = open(&between, &short_nonce(b"CurveZMQREADY---", number), sealed, "READY")?;
        let metadata = local.read(&plain)?;
        let cipher = Some(Cipher::of_client(between, self.sent, self.received));
        Ok(Step::Finished(Box::new(Finished { metadata, client_key: None, cipher, ready: None })))
    }
}

impl fmt::Debug for CurveClient {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("CurveClient").field("server", &self.server).finish_non_exhaustive()
    }
}
