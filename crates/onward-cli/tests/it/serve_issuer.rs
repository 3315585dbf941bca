//! `onward serve` with an issuer of tokens.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use serde_json::Value;

use crate::harness::Sandbox;
use crate::serve::Serving;
use crate::stores::on_every_store;

on_every_store! {
    a_token_of_the_issuer_is_a_credential,
    an_issuer_without_its_parts_is_refused,
    a_server_beyond_loopback_may_sign_in_by_an_issuer_alone,
}

/// The public key of [`TOKEN`].
const KEYS: &str =
    r#"{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"k","x":"rw0pp7lP0mGP21_omK4I0w6fZSeWC8KSUklbUiYn0tA"}]}"#;

/// A token for the audience `onward` and the group `ops`, until the year 2100.
const TOKEN: &str = "\
    eyJhbGciOiJFZERTQSIsImtpZCI6ImsiLCJ0eXAiOiJKV1QifQ.\
    eyJpc3MiOiJodHRwczovL2lkLmV4YW1wbGUiLCJzdWIiOiJjaSIsImF1ZCI6Im9ud2FyZCIsImdyb3VwcyI6WyJvcHMiXSwiZXhwIjo0MTAyNDQ0ODAwfQ.\
    CxvnL0-FpZtNDIagGKLd79ILpp_7YhVIJZQgyFwgB0VuEaGj--ov0eaJW4JZYNY7c4L7hKMAy8tj6NAiHMiFAw";

/// Serves the keys of the issuer on a thread, and returns their URL.
fn serve_keys() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/keys", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut head = [0; 4096];
            let _ = stream.read(&mut head);
            let length = KEYS.len();
            let _ = write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{KEYS}");
        }
    });
    url
}

const ISSUER: [&str; 6] = ["--issuer", "https://id.example", "--audience", "onward", "--claim-role", "ops=operator"];

/// Shows: W8
fn a_token_of_the_issuer_is_a_credential(sandbox: Sandbox) {
    let url = serve_keys();
    let flags = [&["--listen", "127.0.0.1:0", "--issuer-keys", url.as_str()], &ISSUER[..]].concat();
    let serving = Serving::start_with(&sandbox, &flags);
    let (status, me) = serving.request("GET", "/v1/me", TOKEN, &Value::Null);
    assert_eq!((status, me["role"].as_str(), me["name"].as_str()), (200, Some("operator"), Some("ci")), "{me}");
    assert_eq!(serving.request("GET", "/v1/keys", TOKEN, &Value::Null).0, 403);
    let changed = format!("{}A", &TOKEN[..TOKEN.len() - 1]);
    assert_eq!(serving.request("GET", "/v1/me", &changed, &Value::Null).0, 401);
    assert_eq!(serving.stop(), Some(0));
}

fn an_issuer_without_its_parts_is_refused(sandbox: Sandbox) {
    let refused = |flags: &[&str]| {
        let ran = sandbox.onward(&[&["serve", "--check"], flags].concat());
        assert_eq!(ran.code, Some(2), "{ran:?}");
        ran.stderr
    };
    assert!(refused(&ISSUER[..2]).contains("neither an audience nor a client id"));
    assert!(refused(&ISSUER[..4]).contains("gives no account a role"));
    assert!(refused(&ISSUER[2..]).contains("--audience has no issuer"));
    assert!(refused(&["--issuer", "http://id.example"]).contains("https://"));
    let algorithm = refused(&[&["--issuer-algorithm", "HS256"], &ISSUER[..]].concat());
    assert!(algorithm.contains("RS256, ES256, EdDSA"), "{algorithm}");
    let secret = refused(&[&["--oidc-client", "a", "--oidc-secret-file", "missing"], &ISSUER[..]].concat());
    assert!(secret.contains("the secret in missing cannot be used"), "{secret}");
    let alone = refused(&[&["--oidc-secret-file", "missing"], &ISSUER[..]].concat());
    assert!(alone.contains("--oidc-client"), "{alone}");
}

fn a_server_beyond_loopback_may_sign_in_by_an_issuer_alone(sandbox: Sandbox) {
    let listen = ["serve", "--check", "--listen", "0.0.0.0:7070", "--behind-proxy", "203.0.113.9"];
    let without = sandbox.onward(&listen);
    assert!(without.code == Some(2) && without.stderr.contains("sign-in is missing"), "{without:?}");
    let with = sandbox.onward(&[&listen[..], &ISSUER].concat());
    assert_eq!(with.code, Some(0), "{with:?}");
}
