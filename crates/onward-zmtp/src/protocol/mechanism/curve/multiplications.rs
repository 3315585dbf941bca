//! The costs of CURVE for a server until it refuses a peer, in multiplications on the curve
//! (X25519). All other work of a handshake is negligible beside one multiplication.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Instant;

use bytes::Buf;
use crypto_box::SalsaBox;

use super::boxes::{COOKIE_BYTES, HELLO_BYTES, HELLO_PADDING, HELLO_PLAIN, seal, short_nonce};
use super::keys::WEAK;
use crate::protocol::mechanism::{Credentials, Entropy, KeyPair, PublicKey, SecretKey, Security};
use crate::protocol::{Connection, Event, Options, SocketType};

thread_local! {
    static MULTIPLICATIONS: Cell<u32> = const { Cell::new(0) };
}

/// Counts one multiplication of this thread.
pub(super) fn multiply() {
    MULTIPLICATIONS.set(MULTIPLICATIONS.get() + 1);
}

/// Returns the result of `work` and the number of multiplications in it.
fn counted<T>(work: impl FnOnce() -> T) -> (T, u32) {
    let before = MULTIPLICATIONS.get();
    let result = work();
    (result, MULTIPLICATIONS.get() - before)
}

/// The cost to reply to a `HELLO`: the box to the client, and the local transient public key.
const ANSWERED: u32 = 2;
/// The cost to identify a client: also the box between the transient keys and that of the vouch.
const KNOWN: u32 = ANSWERED + 2;

/// The octets of a greeting, and of the header before the data of a `HELLO` and an `INITIATE`.
const GREETING: usize = 64;
const HELLO_HEADER: usize = 8;
const INITIATE_HEADER: usize = 18;

#[expect(clippy::disallowed_methods, reason = "an Instant cannot be made otherwise; nothing reads the clock again")]
fn connection(socket_type: SocketType, security: Security, seed: u8) -> Connection {
    let options = Arc::new(Options::new(socket_type).security(security));
    let entropy = Entropy::from_octets(std::array::from_fn(|index| (index as u8).wrapping_mul(31) ^ seed));
    Connection::new(options, entropy, Instant::now())
}

fn keys(seed: u8) -> KeyPair {
    KeyPair::from(SecretKey::from_bytes([seed; 32]))
}

fn server(seed: u8) -> Connection {
    connection(SocketType::Pull, Security::CurveServer { keys: keys(9) }, seed)
}

fn client(keys_of_client: KeyPair) -> Connection {
    let security = Security::CurveClient { server: keys(9).public(), keys: keys_of_client };
    connection(SocketType::Push, security, 1)
}

fn drain(connection: &mut Connection) -> Vec<u8> {
    let count = connection.output().remaining();
    connection.output().copy_to_bytes(count).to_vec()
}

/// Passes bytes to a connection. Returns an event, nothing yet (`None`), or the end of the
/// connection.
#[expect(clippy::disallowed_methods, reason = "the time has no part in it")]
fn receive(connection: &mut Connection, bytes: &[u8]) -> crate::protocol::Result<Option<Event>> {
    let mut rest = bytes;
    loop {
        rest = &rest[connection.receive(rest)..];
        let event = connection.poll_event(Instant::now())?;
        if event.is_some() || rest.is_empty() {
            return Ok(event);
        }
    }
}

/// Returns what this client sends to the server with entropy 2: greeting, `HELLO`, `INITIATE`.
fn sent(mut client: Connection) -> [Vec<u8>; 3] {
    let mut server = server(2);
    receive(&mut client, &drain(&mut server)).unwrap();
    let bytes = drain(&mut client);
    receive(&mut server, &bytes).unwrap();
    receive(&mut client, &drain(&mut server)).unwrap();
    let (greeting, hello) = bytes.split_at(GREETING);
    [greeting.to_vec(), hello.to_vec(), drain(&mut client)]
}

/// Returns the number of multiplications after which the server with entropy 2 refuses a peer that
/// sends this.
fn cost_of_refusal(sent: &[Vec<u8>]) -> u32 {
    let mut server = server(2);
    let (outcome, cost) = counted(|| receive(&mut server, &sent.concat()));
    assert!(outcome.is_err(), "{outcome:?}");
    let (again, more) = counted(|| receive(&mut server, &sent.concat()));
    assert!(again.is_err() && more == 0, "{more} more after the refusal, which is {again:?}");
    cost
}

/// Returns the command with one octet of its data changed.
fn changed(command: &[u8], header: usize, at: usize) -> Vec<u8> {
    let mut command = command.to_vec();
    // 0x40 is not the highest bit, which a key ignores, nor a bit that keeps a number from growing.
    command[header + at] ^= 0x40;
    command
}

#[test]
fn a_hello_that_is_none_by_its_looks_costs_no_multiplication() {
    let [greeting, hello, _] = sent(client(keys(7)));
    let version_or_padding = (0..2 + HELLO_PADDING).map(|at| changed(&hello, HELLO_HEADER, at));
    let mut number_zero = hello.clone();
    number_zero[HELLO_HEADER + 34 + HELLO_PADDING..][..8].fill(0);
    let mut longer = [&hello[..], &[0]].concat();
    longer[1] += 1;
    let mut shorter = hello[..hello.len() - 1].to_vec();
    shorter[1] -= 1;
    let mut another = hello.clone();
    another[3..HELLO_HEADER].copy_from_slice(b"READY");
    let ill_formed = [number_zero, longer, shorter, another, b"\x04\x06\x05HELLO".to_vec(), vec![0xFF; 300]];
    for hello in version_or_padding.chain(ill_formed) {
        assert_eq!(cost_of_refusal(&[greeting.clone(), hello]), 0);
    }
}

#[test]
fn a_greeting_of_another_mechanism_costs_no_multiplication() {
    let [greeting, hello, initiate] = sent(client(keys(7)));
    for name in [b"NULL\0", b"PLAIN", b"curve"] {
        let mut greeting = greeting.clone();
        greeting[12..17].copy_from_slice(name);
        assert_eq!(cost_of_refusal(&[greeting, hello.clone(), initiate.clone()]), 0);
    }
}

#[test]
fn a_hello_whose_box_cannot_be_opened_costs_one_multiplication() {
    let [greeting, hello, _] = sent(client(keys(7)));
    for at in 2 + HELLO_PADDING..HELLO_BYTES {
        assert_eq!(cost_of_refusal(&[greeting.clone(), changed(&hello, HELLO_HEADER, at)]), 1, "octet {at}");
    }
}

/// Returns the box of a `HELLO` between any two keys.
fn boxed(key: [u8; 32], secret: u8) -> Vec<u8> {
    let secret = SecretKey::from_bytes([secret; 32]);
    let between = SalsaBox::new(&crypto_box::PublicKey::from_bytes(key), secret.as_crypto());
    seal(&between, &short_nonce(b"CurveZMQHELLO---", 1), &HELLO_PLAIN).unwrap()
}

#[test]
fn with_a_weak_key_a_box_is_the_same_whatever_the_secret() {
    assert_ne!(boxed(*keys(7).public().as_bytes(), 5), boxed(*keys(7).public().as_bytes(), 6));
    for key in WEAK {
        assert_eq!(boxed(key, 5), boxed(key, 6), "{key:?}");
    }
}

/// Returns a `HELLO` with a weak key, for which the sender needs no key of the server.
fn hello_with(key: [u8; 32]) -> Vec<u8> {
    let padding = [&b"\x04\xc8\x05HELLO\x01\x00"[..], &[0; HELLO_PADDING]].concat();
    [&padding[..], &key, &1_u64.to_be_bytes(), &boxed(key, 5)].concat()
}

/// Shows: M2
#[test]
fn a_hello_with_a_weak_key_is_refused_and_costs_no_multiplication() {
    let [greeting, ..] = sent(client(keys(7)));
    for mut key in WEAK {
        assert_eq!(cost_of_refusal(&[greeting.clone(), hello_with(key)]), 0, "{key:?}");
        key[31] |= 0x80;
        assert_eq!(cost_of_refusal(&[greeting.clone(), hello_with(key)]), 0, "{key:?}");
    }
}

#[test]
fn a_hello_that_is_said_twice_costs_no_more_than_one() {
    let [greeting, hello, _] = sent(client(keys(7)));
    assert_eq!(cost_of_refusal(&[greeting, hello.clone(), hello]), ANSWERED);
}

#[test]
fn an_initiate_of_another_connection_costs_no_multiplication() {
    let mut other = server(3);
    let [greeting, hello, initiate] = sent(client(keys(7)));
    let (answered, cost) = counted(|| receive(&mut other, &[greeting, hello].concat()));
    assert!(matches!(answered, Ok(None)), "{answered:?}");
    assert_eq!(cost, ANSWERED);
    let (refused, cost) = counted(|| receive(&mut other, &initiate));
    assert!(refused.unwrap_err().is_cryptographic());
    assert_eq!(cost, 0);
}

#[test]
fn an_initiate_that_was_tampered_with_costs_no_multiplication_or_one() {
    let [greeting, hello, initiate] = sent(client(keys(7)));
    for at in 0..initiate.len() - INITIATE_HEADER {
        let sent = [greeting.clone(), hello.clone(), changed(&initiate, INITIATE_HEADER, at)];
        let expected = if at < COOKIE_BYTES { ANSWERED } else { ANSWERED + 1 };
        assert_eq!(cost_of_refusal(&sent), expected, "octet {at}");
    }
}

/// Shows: M2
#[test]
fn a_client_with_the_key_of_another_is_refused_before_the_authorizer_is_called() {
    let impostor = KeyPair::claimed(keys(7).public(), keys(8).secret());
    assert_eq!(cost_of_refusal(&sent(client(impostor))), KNOWN);
}

/// Returns the server with entropy 2, which waits for the decision about this client, and the
/// client's key.
fn undecided() -> (Connection, PublicKey) {
    let sent = sent(client(keys(7))).concat();
    let mut server = server(2);
    let (event, cost) = counted(|| receive(&mut server, &sent).unwrap());
    assert_eq!(cost, KNOWN);
    let Some(Event::Authenticate(Credentials::Curve { key })) = event else { panic!("{event:?}") };
    drain(&mut server);
    (server, key)
}

#[test]
fn the_decision_about_a_client_costs_no_multiplication_whatever_it_is() {
    let (mut accepts, key) = undecided();
    assert_eq!(key, keys(7).public());
    let (event, cost) = counted(|| {
        accepts.accept().unwrap();
        receive(&mut accepts, &[]).unwrap()
    });
    assert!(matches!(event, Some(Event::Ready(_))), "{event:?}");
    assert_eq!(cost, 0);
    let (mut refuses, _) = undecided();
    let (refused, cost) = counted(|| {
        refuses.refuse("400").unwrap();
        receive(&mut refuses, &[])
    });
    assert!(refused.unwrap_err().is_refused());
    assert_eq!(cost, 0);
}

#[test]
fn messages_after_the_handshake_cost_no_multiplication() {
    let (mut server, mut client) = (server(2), client(keys(7)));
    receive(&mut client, &drain(&mut server)).unwrap();
    receive(&mut server, &drain(&mut client)).unwrap();
    receive(&mut client, &drain(&mut server)).unwrap();
    receive(&mut server, &drain(&mut client)).unwrap();
    server.accept().unwrap();
    receive(&mut server, &[]).unwrap();
    receive(&mut client, &drain(&mut server)).unwrap();
    let (event, cost) = counted(|| {
        client.send("text".into()).unwrap();
        receive(&mut server, &drain(&mut client)).unwrap()
    });
    assert!(matches!(event, Some(Event::Message(_))), "{event:?}");
    assert_eq!(cost, 0);
}
