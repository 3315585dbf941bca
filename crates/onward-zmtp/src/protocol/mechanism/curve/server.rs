//! The server of CURVE (RFC 26).

use std::fmt;

use crypto_box::SalsaBox;
use crypto_box::aead::KeyInit;
use crypto_box::aead::generic_array::GenericArray;
use crypto_secretbox::XSalsa20Poly1305;
use subtle::ConstantTimeEq;
use zeroize::{Zeroize, Zeroizing};

use super::boxes::{
    COOKIE_BYTES, HELLO_BYTES, HELLO_PADDING, HELLO_PLAIN, INITIATE_BYTES, VERSION, array, cannot_open, long_nonce,
    open, seal, shared, short_nonce,
};
use super::cipher::{self, Cipher};
use super::keys::{KeyPair, PublicKey, SecretKey};
use crate::protocol::error::{Error, Result};
use crate::protocol::mechanism::entropy::Entropy;
use crate::protocol::mechanism::local_side::LocalSide;
use crate::protocol::mechanism::negotiation::{Finished, Step, nothing_to_decide, unexpected};
use crate::protocol::mechanism::security::{Credentials, Security};
use crate::protocol::metadata::Metadata;
use crate::protocol::wire::output::Output;

/// The server's side: → `HELLO`, `WELCOME` ←, → `INITIATE`, `READY` ←.
///
/// Between `WELCOME` and `INITIATE` it keeps no transient key. The key is in the cookie, which only
/// this connection can open, and only once.
pub(crate) struct CurveServer {
    state: State,
    cookie_key: Zeroizing<[u8; 32]>,
    received: u64,
}

enum State {
    /// Has the random octets for `WELCOME`.
    AwaitsHello(Box<Seeds>),
    AwaitsInitiate,
    AwaitsDecision(Box<Candidate>),
    Done,
}

struct Seeds {
    transient: Zeroizing<[u8; 32]>,
    welcome_nonce: [u8; 16],
    cookie_nonce: [u8; 16],
}

/// A client that proved its identity.
struct Candidate {
    key: PublicKey,
    metadata: Metadata,
    between: SalsaBox,
}

impl CurveServer {
    pub(in crate::protocol::mechanism) fn new(entropy: &Entropy) -> Self {
        let seeds = Seeds {
            transient: Zeroizing::new(entropy.transient_key()),
            welcome_nonce: entropy.nonce(),
            cookie_nonce: entropy.cookie_nonce(),
        };
        let cookie_key = Zeroizing::new(entropy.cookie_key());
        Self { state: State::AwaitsHello(Box::new(seeds)), cookie_key, received: 0 }
    }

    pub(in crate::protocol::mechanism) fn command(
        &mut self,
        name: &[u8],
        data: &[u8],
        local: &LocalSide<'_>,
        output: &mut Output,
    ) -> Result<Step> {
        // Only these options create a `CurveServer`, so the error is never returned.
        let Security::CurveServer { keys } = &local.options.security else { return Err(nothing_to_decide()) };
        // The state stays `Done` unless a handler sets the next one, so a failed handshake cannot
        // go further.
        match (std::mem::replace(&mut self.state, State::Done), name) {
            (State::AwaitsHello(seeds), b"HELLO") => self.hello(&seeds, keys, data, output),
            (State::AwaitsInitiate, b"INITIATE") => self.initiate(keys, data, local),
            (State::AwaitsHello(_), _) => Err(unexpected(name, "HELLO")),
            _ => Err(unexpected(name, "INITIATE")),
        }
    }

    fn hello(&mut self, seeds: &Seeds, keys: &KeyPair, data: &[u8], output: &mut Output) -> Result<Step> {
        // The checks go from cheap to expensive, because anyone can send a HELLO.
        check_hello(data)?;
        let client_transient = PublicKey::from_bytes(array(data, 2 + HELLO_PADDING));
        let number = u64::from_be_bytes(array(data, 34 + HELLO_PADDING));
        cipher::advance_to(&mut self.received, number)?;
        let to_client = shared(client_transient, keys.secret())?;
        let plain = open(&to_client, &short_nonce(b"CurveZMQHELLO---", number), &data[42 + HELLO_PADDING..], "HELLO")?;
        if plain[..] != HELLO_PLAIN {
            return Err(cannot_open("HELLO"));
        }
        self.welcome(seeds, client_transient, &to_client, output)?;
        self.state = State::AwaitsInitiate;
        Ok(Step::Wait)
    }

    fn welcome(&self, seeds: &Seeds, client: PublicKey, to_client: &SalsaBox, output: &mut Output) -> Result<()> {
        let transient = KeyPair::from(SecretKey::from_bytes(*seeds.transient));
        let secrets = Zeroizing::new([*client.as_bytes(), *seeds.transient].concat());
        let cookie = seal(&self.cookie_box(), &long_nonce(b"COOKIE--", &seeds.cookie_nonce), &secrets)?;
        let plain = [&transient.public().as_bytes()[..], &seeds.cookie_nonce, &cookie].concat();
        let sealed = seal(to_client, &long_nonce(b"WELCOME-", &seeds.welcome_nonce), &plain)?;
        output.push_command("WELCOME", &[&seeds.welcome_nonce[..], &sealed].concat());
        Ok(())
    }

    fn cookie_box(&self) -> XSalsa20Poly1305 {
        XSalsa20Poly1305::new(GenericArray::from_slice(&self.cookie_key[..]))
    }

    fn initiate(&mut self, keys: &KeyPair, data: &[u8], local: &LocalSide<'_>) -> Result<Step> {
        if data.len() < INITIATE_BYTES {
            return Err(Error::malformed("the peer's INITIATE is too short"));
        }
        let (client_transient, transient) = self.open_cookie(data)?;
        let between = shared(client_transient, &transient)?;
        let number = u64::from_be_bytes(array(data, COOKIE_BYTES));
        cipher::advance_to(&mut self.received, number)?;
        let nonce = short_nonce(b"CurveZMQINITIATE", number);
        let plain = open(&between, &nonce, &data[COOKIE_BYTES + 8..], "INITIATE")?;
        // The box holds the client's key (32), a nonce (16), the vouch (80), and the metadata.
        let key = PublicKey::from_bytes(array(&plain, 0));
        check_vouch(&plain, key, client_transient, keys.public(), &transient)?;
        let metadata = local.read(&plain[128..])?;
        self.state = State::AwaitsDecision(Box::new(Candidate { key, metadata, between }));
        Ok(Step::Authenticate(Credentials::Curve { key }))
    }

    /// Opens the cookie and returns the client's transient key and the local one. It wipes the key
    /// of the cookie, because the connection has only one cookie.
    fn open_cookie(&mut self, data: &[u8]) -> Result<(PublicKey, SecretKey)> {
        let nonce = long_nonce(b"COOKIE--", &array(data, 0));
        let plain = open(&self.cookie_box(), &nonce, &data[16..COOKIE_BYTES], "cookie");
        // This comes before the check of the result, so that a failed attempt wipes the key, too.
        self.cookie_key.zeroize();
        let plain = plain?;
        Ok((PublicKey::from_bytes(array(&plain, 0)), SecretKey::from_bytes(array(&plain, 32))))
    }

    pub(in crate::protocol::mechanism) fn accept(&mut self, local: &LocalSide<'_>) -> Result<Step> {
        let State::AwaitsDecision(candidate) = std::mem::replace(&mut self.state, State::Done) else {
            return Err(nothing_to_decide());
        };
        let mut sent = 0;
        let number = cipher::next(&mut sent)?;
        let sealed = seal(&candidate.between, &short_nonce(b"CurveZMQREADY---", number), &local.metadata())?;
        let ready = Some([&number.to_be_bytes()[..], &sealed].concat());
        let cipher = Some(Cipher::of_server(candidate.between, sent, self.received));
        let Candidate { key, metadata, .. } = *candidate;
        Ok(Step::Finished(Box::new(Finished { metadata, client_key: Some(key), cipher, ready })))
    }
}

/// Rejects a `HELLO` whose fault shows without any cryptography.
fn check_hello(data: &[u8]) -> Result<()> {
    if data.len() != HELLO_BYTES {
        return Err(Error::malformed("the peer's HELLO has the wrong length"));
    }
    if data[..2] != VERSION {
        return Err(Error::malformed("the peer's HELLO is of another version of CURVE than 1.0"));
    }
    if data[2..2 + HELLO_PADDING].iter().any(|octet| *octet != 0) {
        return Err(Error::malformed("the peer's HELLO is not padded with zeros"));
    }
    Ok(())
}

/// Checks that the vouch in an `INITIATE` states that the owner of `key` made `client_transient`
/// for this server.
fn check_vouch(
    plain: &[u8],
    key: PublicKey,
    client_transient: PublicKey,
    ours: PublicKey,
    transient: &SecretKey,
) -> Result<()> {
    let nonce = long_nonce(b"VOUCH---", &array(plain, 32));
    // The vouch names the server, so another server that the client has contacted cannot pass it
    // on.
    let vouch = open(&shared(key, transient)?, &nonce, &plain[48..128], "vouch")?;
    let expected = [*client_transient.as_bytes(), *ours.as_bytes()].concat();
    if bool::from(vouch.ct_eq(&expected)) { Ok(()) } else { Err(cannot_open("vouch")) }
}

impl fmt::Debug for CurveServer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("CurveServer").finish_non_exhaustive()
    }
}

#[cfg(test)]
#[cfg(not(miri))]
mod tests {
    use super::*;

    fn keys(seed: u8) -> KeyPair {
        KeyPair::from(SecretKey::from_bytes([seed; 32]))
    }

    /// Returns whether a server with the keys 9 accepts a vouch of the client 7. The vouch names
    /// the server and the transient key of these numbers.
    fn is_taken(server: u8, transient_of_client: u8) -> bool {
        let (ours, client, transient) = (keys(9), keys(7), keys(2));
        let says = [*keys(transient_of_client).public().as_bytes(), *keys(server).public().as_bytes()].concat();
        let between = shared(transient.public(), client.secret()).unwrap();
        let vouch = seal(&between, &long_nonce(b"VOUCH---", &[4; 16]), &says).unwrap();
        let plain = [&client.public().as_bytes()[..], &[4; 16], &vouch].concat();
        check_vouch(&plain, client.public(), keys(1).public(), ours.public(), transient.secret()).is_ok()
    }

    #[test]
    fn a_vouch_that_was_made_for_another_server_is_not_taken() {
        assert!(is_taken(9, 1));
        assert!(!is_taken(8, 1));
    }

    #[test]
    fn a_vouch_for_another_transient_key_is_not_taken() {
        assert!(!is_taken(9, 3));
    }
}
