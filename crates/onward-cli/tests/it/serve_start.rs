//! The start of a server: its conditions, its certificate, its settings while it runs.

use std::process::Command;

use base64::Engine as _;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::harness::Sandbox;
use crate::serve::{Serving, create_key};
use crate::stores::on_every_store;

on_every_store! {
    a_server_beyond_loopback_needs_sign_in_and_tls,
    a_server_beyond_loopback_serves_tls,
    a_hang_up_takes_limits_over_and_names_what_needs_a_restart,
    wrong_settings_at_a_hang_up_change_nothing,
    a_check_starts_nothing,
}

fn pem(label: &str, der: &[u8]) -> String {
    let text = base64::engine::general_purpose::STANDARD.encode(der);
    format!("-----BEGIN {label}-----\n{text}\n-----END {label}-----\n")
}

/// Writes a new certificate for localhost: `cert.pem` and `key.pem`.
fn write_certificate(sandbox: &Sandbox) {
    let key = rcgen::KeyPair::generate().unwrap();
    let parameters = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let certificate = parameters.self_signed(&key).unwrap();
    sandbox.write("cert.pem", &pem("CERTIFICATE", certificate.der()));
    sandbox.write("key.pem", &pem("PRIVATE KEY", &key.serialize_der()));
}

const TLS: [&str; 4] = ["--tls-cert", "cert.pem", "--tls-key", "key.pem"];

fn refused(sandbox: &Sandbox, flags: &[&str]) -> String {
    let ran = sandbox.onward(&[&["serve", "--listen", "0.0.0.0:0"], flags].concat());
    assert_eq!(ran.code, Some(2), "{ran:?}");
    ran.stderr
}

/// Shows: W8
fn a_server_beyond_loopback_needs_sign_in_and_tls(sandbox: Sandbox) {
    write_certificate(&sandbox);
    let both = refused(&sandbox, &[]);
    assert!(both.contains("TLS is missing") && both.contains("sign-in is missing"), "{both}");
    assert!(refused(&sandbox, &TLS).contains("sign-in is missing"));
    create_key(&sandbox, "viewer");
    let tls = refused(&sandbox, &[]);
    assert!(tls.contains("TLS is missing") && !tls.contains("sign-in is missing"), "{tls}");
    assert!(refused(&sandbox, &TLS[..2]).contains("--tls-cert has no key"));
    let proxied = Serving::start_with(&sandbox, &["--listen", "0.0.0.0:0", "--behind-proxy", "203.0.113.9"]);
    assert_eq!(proxied.stop(), Some(0));
}

/// Requests a path of a server with TLS, and returns the status; 0 if there was no response.
fn status(sandbox: &Sandbox, serving: &Serving) -> u16 {
    let port = serving.announced["listening"].as_str().unwrap().rsplit_once(':').unwrap().1;
    let output = Command::new("curl")
        .args(["-s", "-o", "none", "-w", "%{http_code}", "--cacert", "cert.pem"])
        .arg(format!("https://localhost:{port}/v1/health/ready"))
        .current_dir(sandbox.path(""))
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout).parse().unwrap()
}

/// Shows: W8
#[expect(clippy::print_stdout, reason = "a test that does not run says so")]
fn a_server_beyond_loopback_serves_tls(sandbox: Sandbox) {
    if Command::new("curl").arg("--version").output().is_err() {
        println!("not tested: there is no curl");
        return;
    }
    create_key(&sandbox, "viewer");
    write_certificate(&sandbox);
    let mut serving = Serving::start_with(&sandbox, &[&["--listen", "0.0.0.0:0"], &TLS[..]].concat());
    assert!(serving.announced["listening"].as_str().unwrap().starts_with("https://"));
    assert_eq!(status(&sandbox, &serving), 200);
    write_certificate(&sandbox);
    assert_eq!(status(&sandbox, &serving), 0, "the client knows the new certificate only");
    serving.signal(Signal::HUP);
    serving.await_said("settings read again");
    assert_eq!(status(&sandbox, &serving), 200);
    sandbox.write("key.pem", "nonsense");
    serving.signal(Signal::HUP);
    let said = serving.await_said("the certificate stays as it was");
    assert!(said.contains("key.pem"), "{said}");
    assert_eq!(status(&sandbox, &serving), 200);
    assert_eq!(serving.stop(), Some(0));
}

fn streams(serving: &Serving, key: &str) -> u16 {
    // Without a wait the request ends at once, and is one of the streams while it lasts.
    serving.request("GET", "/v1/events?wait=1s", key, &Value::Null).0
}

/// Shows: W8
fn a_hang_up_takes_limits_over_and_names_what_needs_a_restart(sandbox: Sandbox) {
    let key = create_key(&sandbox, "admin")["key"].as_str().unwrap().to_owned();
    sandbox.write("onward.toml", "[serve]\nlisten = \"127.0.0.1:0\"\nstreams = 0\n");
    let mut serving = Serving::start_with(&sandbox, &[]);
    assert_eq!(streams(&serving, &key), 429);
    sandbox.write("onward.toml", "[serve]\nlisten = \"127.0.0.1:1\"\nstreams = 10\nlog = \"info\"\n");
    serving.signal(Signal::HUP);
    let said = serving.await_said("settings read again");
    assert!(said.contains("listen need a restart"), "{said}");
    assert_eq!(streams(&serving, &key), 200);
    assert_eq!(serving.request("POST", "/v1/keys", &key, &json!({"name": "n", "role": "viewer"})).0, 201);
    serving.await_said("a change");
    assert_eq!(serving.stop(), Some(0));
}

fn wrong_settings_at_a_hang_up_change_nothing(sandbox: Sandbox) {
    let key = create_key(&sandbox, "admin")["key"].as_str().unwrap().to_owned();
    sandbox.write("onward.toml", "[serve]\nlisten = \"127.0.0.1:0\"\n");
    let mut serving = Serving::start_with(&sandbox, &[]);
    sandbox.write("onward.toml", "[serve]\nstreams = 0\nrequest-time = \"a while\"\n");
    serving.signal(Signal::HUP);
    let said = serving.await_said("the settings stay as they were");
    assert!(said.contains("serve.request-time"), "{said}");
    assert_eq!(streams(&serving, &key), 200);
    assert_eq!(serving.stop(), Some(0));
}

fn a_check_starts_nothing(sandbox: Sandbox) {
    let fine = sandbox.onward(&["serve", "--check"]);
    assert_eq!(fine.code, Some(0), "{fine:?}");
    assert!(fine.stdout.contains("ready to listen on http://127.0.0.1:7070"), "{fine:?}");
    let open = sandbox.onward(&["serve", "--check", "--listen", "0.0.0.0:7070"]);
    assert!(open.code == Some(2) && open.stderr.contains("TLS is missing"), "{open:?}");
    let missing = sandbox.onward(&[&["serve", "--check"], &TLS[..]].concat());
    assert!(missing.code == Some(2) && missing.stderr.contains("cert.pem"), "{missing:?}");
    assert!(!sandbox.path("onward.db").exists());
}
