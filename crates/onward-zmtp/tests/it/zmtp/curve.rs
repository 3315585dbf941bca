//! Tests of CURVE against peers that tamper and replay.

use onward_zmtp::protocol::{Connection, KeyPair, Options, PublicKey, SecretKey, Security, SocketType};

use super::allocations::counted;
use super::link::{Seen, connection, drain, error, exchange, feed, frame, greeting, keys, mechanisms, message, pair};

const HELLO: usize = 202;
const WELCOME: usize = 170;

/// A bound on the bytes that a connection allocates before a client is refused.
const REFUSAL_BYTES: i64 = 8 * 1024;
/// A bound on the allocations for that.
const REFUSAL_ALLOCATIONS: u64 = 40;

fn client() -> Connection {
    connection(Options::new(SocketType::Push).security(mechanisms()[2].1.clone()), 1)
}

fn server(seed: u8) -> Connection {
    connection(Options::new(SocketType::Pull).security(mechanisms()[2].2.clone()), seed)
}

/// Returns the messages of the client to a server with entropy 2: greeting, `HELLO`, `INITIATE`.
fn said() -> [Vec<u8>; 3] {
    let (mut client, mut server) = (client(), server(2));
    feed(&mut client, &drain(&mut server));
    let mut hello = drain(&mut client);
    let greeting: Vec<u8> = hello.drain(..64).collect();
    feed(&mut server, &greeting);
    feed(&mut server, &hello);
    feed(&mut client, &drain(&mut server));
    [greeting, hello, drain(&mut client)]
}

/// Shows: M2
#[test]
fn the_commands_have_the_sizes_of_the_rfc() {
    let [_, hello, initiate] = said();
    assert_eq!(hello.len(), HELLO);
    assert_eq!(hello[..10], *b"\x04\xc8\x05HELLO\x01\x00");
    assert!(hello[10..82].iter().all(|octet| *octet == 0));
    // 257 octets and the metadata `Socket-Type` = `PUSH`, in a frame with a long length.
    assert_eq!(initiate.len(), 9 + 257 + 20);
    assert_eq!(initiate[9..18], *b"\x08INITIATE");
    let mut server = server(2);
    drain(&mut server);
    feed(&mut server, &[greeting(1, "CURVE", false), hello].concat());
    assert_eq!(drain(&mut server).len(), WELCOME);
}

/// Shows: M2
#[test]
fn no_octet_of_hello_can_be_changed() {
    let [greeting, hello, _] = said();
    for at in 2..hello.len() {
        let mut hello = hello.clone();
        hello[at] ^= 1;
        let mut server = server(2);
        drain(&mut server);
        let seen = feed(&mut server, &[&greeting[..], &hello].concat());
        // The highest bit of a key has no meaning in X25519. The lowest bit has one everywhere.
        assert!(matches!(seen[..], [Seen::Error(_)]), "octet {at}: {seen:?}");
        assert!(drain(&mut server).is_empty(), "a reply in spite of octet {at}");
    }
}

/// Shows: M2
#[test]
fn a_client_that_is_refused_has_cost_little_and_leaves_nothing() {
    let [greeting, hello, initiate] = said();
    let changed = |command: &[u8]| {
        let mut command = command.to_vec();
        if let Some(last) = command.last_mut() {
            *last ^= 1;
        }
        command
    };
    for refused in [[&greeting[..], &changed(&hello)].concat(), [&greeting[..], &hello, &changed(&initiate)].concat()] {
        let cost = counted(|| {
            let mut server = server(2);
            drain(&mut server);
            assert!(error(&feed(&mut server, &refused)).is_cryptographic());
        });
        assert_eq!(cost.live, 0);
        assert!(
            cost.peak <= REFUSAL_BYTES && cost.calls <= REFUSAL_ALLOCATIONS,
            "{} bytes, {} allocations",
            cost.peak,
            cost.calls
        );
    }
}

/// Shows: M2
#[test]
fn no_octet_of_initiate_can_be_changed() {
    let [greeting, hello, initiate] = said();
    for at in 9..initiate.len() {
        let mut initiate = initiate.clone();
        initiate[at] ^= 1;
        let mut server = server(2);
        let seen = feed(&mut server, &[&greeting[..], &hello, &initiate].concat());
        assert!(matches!(seen[..], [Seen::Error(_)]), "octet {at}: {seen:?}");
    }
}

/// Shows: M2
#[test]
fn a_recorded_handshake_is_of_no_use_on_another_connection() {
    let recorded = said().concat();
    assert!(matches!(feed(&mut server(2), &recorded)[..], [Seen::Curve(_), Seen::Ready(..)]));
    let seen = feed(&mut server(3), &recorded);
    assert!(matches!(&seen[..], [Seen::Error(error)] if error.is_cryptographic()), "{seen:?}");
}

/// Shows: M2
#[test]
fn an_initiate_or_a_hello_that_is_sent_twice_is_refused() {
    let [greeting, hello, initiate] = said();
    let twice = [&greeting[..], &hello, &hello].concat();
    assert!(matches!(feed(&mut server(2), &twice)[..], [Seen::Error(_)]));
    let twice = [&greeting[..], &hello, &initiate, &initiate].concat();
    assert!(matches!(feed(&mut server(2), &twice)[..], [Seen::Curve(_), Seen::Ready(..), Seen::Error(_)]));
}

/// Shows: M2
#[test]
fn a_client_that_knows_another_servers_key_gets_no_reply() {
    let security = Security::CurveClient { server: keys(8).public(), keys: keys(7) };
    let mut client = connection(Options::new(SocketType::Push).security(security), 1);
    let (at_client, at_server) = exchange(&mut client, &mut server(2));
    assert!(error(&at_server).is_cryptographic());
    assert_eq!(at_client, []);
}

/// Shows: M2
#[test]
fn a_server_without_the_secret_key_cannot_pass_for_the_one_with_it() {
    let mut client = client();
    let security = Security::CurveServer { keys: keys(8) };
    let mut impostor = connection(Options::new(SocketType::Pull).security(security), 2);
    let (at_client, _) = exchange(&mut client, &mut impostor);
    assert_eq!(at_client, []);
    // Replaying the reply of another server to another client fails, too.
    let mut recorded = server(2);
    drain(&mut recorded);
    feed(&mut recorded, &said()[..2].concat());
    let mut other = connection(Options::new(SocketType::Push).security(mechanisms()[2].1.clone()), 77);
    let welcome = drain(&mut recorded);
    let seen = feed(&mut other, &[greeting(1, "CURVE", true), welcome].concat());
    assert!(error(&seen).is_cryptographic());
}

/// Shows: M2
#[test]
fn a_message_that_is_changed_dropped_doubled_or_swapped_is_noticed() {
    let options = |socket_type, security| Options::new(socket_type).security(security);
    let (_, of_client, of_server) = mechanisms().remove(2);
    let linked = || pair(options(SocketType::Push, of_client.clone()), options(SocketType::Pull, of_server.clone()));
    let (mut push, mut pull) = linked();
    let next = |push: &mut Connection| {
        push.send(message(&[b"text"])).unwrap();
        drain(push)
    };
    let (first, second) = (next(&mut push), next(&mut push));
    assert!(matches!(feed(&mut pull, &first)[..], [Seen::Message(_)]));
    assert!(error(&feed(&mut pull, &first)).is_cryptographic());
    let (_, mut pull) = linked();
    assert!(matches!(feed(&mut pull, &second)[..], [Seen::Message(_)]));
    assert!(error(&feed(&mut pull, &first)).is_cryptographic());
    for at in 2..first.len() {
        let (_, mut pull) = linked();
        let mut changed = first.clone();
        changed[at] ^= 1;
        assert!(matches!(feed(&mut pull, &changed)[..], [Seen::Error(_)]), "octet {at}");
    }
}

/// Shows: M2
#[test]
fn what_one_side_encrypted_cannot_be_sent_back_to_it() {
    let (_, of_client, of_server) = mechanisms().remove(2);
    let (mut one, _other) =
        pair(Options::new(SocketType::Pair).security(of_client), Options::new(SocketType::Pair).security(of_server));
    one.send(message(&[b"text"])).unwrap();
    let bytes = drain(&mut one);
    assert!(error(&feed(&mut one, &bytes)).is_cryptographic());
}

/// Shows: M2
#[test]
fn nothing_in_clear_is_accepted_after_an_encrypted_handshake() {
    let (_, of_client, of_server) = mechanisms().remove(2);
    for bytes in [frame(0, b"in clear"), frame(4, b"\x04PING\0\0"), frame(0, &[b'x'; 60])] {
        let (_push, mut pull) = pair(
            Options::new(SocketType::Push).security(of_client.clone()),
            Options::new(SocketType::Pull).security(of_server.clone()),
        );
        assert!(error(&feed(&mut pull, &bytes)).is_malformed());
    }
}

/// Shows: M2
#[test]
fn a_payload_is_nowhere_on_the_wire_in_clear() {
    let (_, of_client, of_server) = mechanisms().remove(2);
    let (mut push, _pull) =
        pair(Options::new(SocketType::Push).security(of_client), Options::new(SocketType::Pull).security(of_server));
    push.send(message(&[&[b'S'; 10_000]])).unwrap();
    let bytes = drain(&mut push);
    assert!(!bytes.windows(8).any(|window| window == b"SSSSSSSS"));
}

/// The keys are those of libzmq's tests and manual, in Z85.
#[test]
fn public_keys_follow_from_secret_keys_as_with_libzmq() {
    let pairs = [
        ("D:)Q[IlAW!ahhC2ac:9*A}h:p?([4%wOTJ%JR%cs", "Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID"),
        ("JTKVSB%%)wK0E.X)V>+}o?pNmC{O&4W4b!Ni{Lh6", "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7"),
    ];
    for (secret, public) in pairs {
        let keys = KeyPair::from(SecretKey::from_z85(secret).unwrap());
        assert_eq!(keys.public(), PublicKey::from_z85(public).unwrap());
        assert_eq!(*keys.secret().to_z85(), *secret);
    }
}

#[test]
fn a_key_that_is_no_z85_is_refused() {
    assert!(PublicKey::from_z85("short").unwrap_err().is_misuse());
    assert!(SecretKey::from_z85(&"~".repeat(40)).unwrap_err().is_misuse());
}

#[test]
fn two_new_keys_are_different() {
    assert_ne!(KeyPair::generate().unwrap().public(), KeyPair::generate().unwrap().public());
}
