//! `onward serve` and `onward key` with the real binary.

#![expect(clippy::panic, reason = "a test that cannot go on should say where")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::harness::Sandbox;
use crate::stores::on_every_store;

on_every_store! {
    the_printed_link_makes_the_first_admin,
    a_created_key_works_until_it_is_revoked,
    a_server_beyond_loopback_is_refused,
    a_killed_server_repeats_what_it_had_committed,
    a_killed_server_repeats_what_it_had_committed_for_the_key_file not on postgres,
}

/// A server in progress.
pub(crate) struct Serving {
    child: Child,
    /// The line of JSON that it printed: its address, its link and its key file.
    pub(crate) announced: Value,
}

impl Serving {
    pub(crate) fn start(sandbox: &Sandbox) -> Self {
        Self::start_with(sandbox, &[])
    }

    fn start_with(sandbox: &Sandbox, options: &[&str]) -> Self {
        let always = ["--json", "serve", "--listen", "127.0.0.1:0", "--stop-within", "20s"];
        let mut child = sandbox.spawn(&[&always, options].concat());
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let announced = serde_json::from_str(&line).unwrap_or_else(|_| {
            let mut error = String::new();
            let _ = child.stderr.as_mut().unwrap().read_to_string(&mut error);
            panic!("the server did not start: {line}{error}");
        });
        Self { child, announced }
    }

    /// Returns the address with its port.
    pub(crate) fn address(&self) -> &str {
        self.announced["listening"].as_str().unwrap().trim_start_matches("http://")
    }

    /// Sends a request and returns the open connection.
    fn send(&self, method: &str, path: &str, headers: &str, body: &Value) -> TcpStream {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let mut stream = TcpStream::connect(self.address()).unwrap();
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\n{headers}content-type: application/json\r\ncontent-length: {length}\r\n\
             connection: close\r\n\r\n{body}"
        )
        .unwrap();
        stream
    }

    /// Sends a request with a key, and returns the status and the body.
    fn request(&self, method: &str, path: &str, key: &str, body: &Value) -> (u16, Value) {
        response(self.send(method, path, &format!("authorization: Bearer {key}\r\n"), body))
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap(), signal).unwrap();
    }

    /// Asks the server to stop, and returns its exit code.
    pub(crate) fn stop(mut self) -> Option<i32> {
        self.signal(Signal::TERM);
        self.child.wait().unwrap().code()
    }
}

fn response(mut stream: TcpStream) -> (u16, Value) {
    let mut text = String::new();
    let _ = stream.read_to_string(&mut text);
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no response: {text}"));
    (head.split(' ').nth(1).unwrap().parse().unwrap(), serde_json::from_str(body).unwrap_or(Value::Null))
}

fn create_key(sandbox: &Sandbox, role: &str) -> Value {
    sandbox.json(&["key", "create", "ci", "--role", role]).remove(0)
}

/// Shows: W8
fn the_printed_link_makes_the_first_admin(sandbox: Sandbox) {
    let serving = Serving::start(&sandbox);
    let link = serving.announced["link"].as_str().unwrap();
    let path = link.strip_prefix(serving.announced["listening"].as_str().unwrap()).unwrap();
    let (status, body) = response(serving.send("GET", path, "", &Value::Null));
    assert_eq!((status, &body["record"]["role"]), (200, &json!("admin")));
    let key = body["key"].as_str().unwrap();
    assert_eq!(serving.request("GET", "/v1/keys", key, &Value::Null).0, 200);
    assert_eq!(serving.stop(), Some(0));
    let serving = Serving::start(&sandbox);
    assert_eq!(serving.announced["link"], Value::Null, "the store has an admin");
    assert_eq!(serving.stop(), Some(0));
}

/// Shows: W8
fn a_created_key_works_until_it_is_revoked(sandbox: Sandbox) {
    let created = create_key(&sandbox, "viewer");
    let (key, id) = (created["key"].as_str().unwrap(), created["record"]["id"].as_str().unwrap());
    let serving = Serving::start(&sandbox);
    assert_eq!(serving.request("GET", "/v1/tasks", key, &Value::Null).0, 200);
    assert_eq!(serving.request("POST", "/v1/tasks", key, &json!({"kind": "k"})).0, 403);
    assert_eq!(sandbox.onward(&["key", "revoke", id]).code, Some(0));
    assert_eq!(serving.request("GET", "/v1/tasks", key, &Value::Null).0, 401);
    let listed = sandbox.json(&["key", "list"]);
    assert!(listed.iter().any(|key| key["id"] == id && key["state"] == "revoked"), "{listed:?}");
    assert_eq!(serving.stop(), Some(0));
}

fn a_server_beyond_loopback_is_refused(sandbox: Sandbox) {
    let ran = sandbox.onward(&["serve", "--listen", "0.0.0.0:0"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("TLS is missing"), "{ran:?}");
}

/// Shows: W8
fn a_killed_server_repeats_what_it_had_committed(sandbox: Sandbox) {
    let created = create_key(&sandbox, "operator");
    let headers = format!("authorization: Bearer {}\r\nidempotency-key: one\r\n", created["key"].as_str().unwrap());
    assert_killed_server_repeats(&sandbox, |_| headers.clone());
}

/// The key in the key file is a new one after each start.
///
/// Shows: W8
fn a_killed_server_repeats_what_it_had_committed_for_the_key_file(sandbox: Sandbox) {
    assert_killed_server_repeats(&sandbox, |serving| {
        let file = serving.announced["key_file"].as_str().unwrap();
        format!("{}\r\nidempotency-key: one\r\n", sandbox.read(file).trim())
    });
}

/// Kills a server between the commit of a submit and its response, and repeats the request.
fn assert_killed_server_repeats(sandbox: &Sandbox, headers: impl Fn(&Serving) -> String) {
    let task = json!({"kind": "k", "payload": 7});
    let mut serving = Serving::start(sandbox);
    // The wait holds the response back after the commit.
    let waiting = serving.send("POST", "/v1/tasks", &format!("{}prefer: wait=60s\r\n", headers(&serving)), &task);
    while sandbox.json(&["task", "list"]).is_empty() {
        std::thread::yield_now();
    }
    serving.signal(Signal::KILL);
    serving.child.wait().unwrap();
    drop(waiting);
    let serving = Serving::start(sandbox);
    let (status, body) = response(serving.send("POST", "/v1/tasks", &headers(&serving), &task));
    assert_eq!((status, &body["id"]), (201, &json!("1")));
    assert_eq!(sandbox.json(&["task", "list"]).len(), 1);
    assert_eq!(serving.stop(), Some(0));
}

/// Shows: W8
#[test]
fn the_key_file_is_private_and_gone_after_a_stop() {
    use std::os::unix::fs::PermissionsExt as _;

    let sandbox = Sandbox::new();
    let serving = Serving::start(&sandbox);
    let path = sandbox.path(serving.announced["key_file"].as_str().unwrap());
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let header = std::fs::read_to_string(&path).unwrap();
    let headers = header.trim().to_owned() + "\r\n";
    assert_eq!(response(serving.send("GET", "/v1/keys", &headers, &Value::Null)).0, 200);
    assert_eq!(serving.stop(), Some(0));
    assert!(!path.exists());
}

/// Shows: B10
#[test]
fn the_demonstration_writes_no_file() {
    let sandbox = Sandbox::new();
    let serving = Serving::start_with(&sandbox, &["--demo"]);
    assert_eq!(serving.announced["key_file"], Value::Null);
    let link = serving.announced["link"].as_str().unwrap();
    let path = link.strip_prefix(serving.announced["listening"].as_str().unwrap()).unwrap();
    let (_, body) = response(serving.send("GET", path, "", &Value::Null));
    let (status, tasks) = serving.request("GET", "/v1/tasks", body["key"].as_str().unwrap(), &Value::Null);
    assert_eq!((status, tasks["items"].as_array().unwrap().len()), (200, 50));
    assert_eq!(serving.stop(), Some(0));
    assert_eq!(std::fs::read_dir(sandbox.path("")).unwrap().count(), 0);
}

#[test]
fn the_demonstration_refuses_a_store() {
    let ran = Sandbox::new().onward(&["serve", "--demo", "--store", "onward.db"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("--store"), "{ran:?}");
}

/// The guide, whose commands are run as they are printed.
const GUIDE: &str = include_str!("../../../../docs/guides/http-api.md");

/// Shows: W8
#[test]
fn every_command_of_the_guide_prints_what_the_guide_says() {
    if Command::new("curl").arg("--version").stdout(Stdio::null()).status().is_err() {
        println!("not tested: there is no curl");
        return;
    }
    let sandbox = Sandbox::new();
    let serving = Serving::start(&sandbox);
    for (commands, expected) in examples() {
        let commands = commands.replace("127.0.0.1:7070", serving.address());
        let printed = shell(&sandbox, &commands);
        assert!(agrees(&printed, &expected), "{commands}\nprinted\n{printed}\ninstead of\n{expected}");
    }
    assert_eq!(serving.stop(), Some(0));
}

/// Returns the blocks of commands of the guide, each with the block of output behind it. The first
/// block starts the server, as this test does.
fn examples() -> Vec<(String, String)> {
    let blocks: Vec<(&str, &str)> =
        GUIDE.split("```").skip(1).step_by(2).filter_map(|block| block.split_once('\n')).collect();
    let mut examples = Vec::new();
    for (index, (language, text)) in blocks.iter().enumerate().filter(|(_, (language, _))| *language == "sh") {
        let output = blocks.get(index + 1).filter(|(language, _)| *language == "text").map_or("", |(_, text)| text);
        assert_eq!(*language, "sh");
        examples.push(((*text).to_owned(), output.to_owned()));
    }
    assert!(examples.len() > 8, "the guide has few commands: {examples:?}");
    assert!(examples[0].0.starts_with("onward serve"), "{examples:?}");
    examples.split_off(1)
}

fn shell(sandbox: &Sandbox, commands: &str) -> String {
    let binary = std::path::Path::new(env!("CARGO_BIN_EXE_onward")).parent().unwrap().to_owned();
    let path = std::env::var("PATH").unwrap();
    let output = Command::new("sh")
        .args(["-e", "-c", commands])
        .current_dir(sandbox.path(""))
        .env("PATH", format!("{}:{path}", binary.display()))
        .env_remove("ONWARD_STORE")
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{commands}\n{}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

/// Returns true if a text is as expected. `…` stands for any text within a line.
fn agrees(printed: &str, expected: &str) -> bool {
    let (printed, expected) = (printed.trim(), expected.trim());
    let lines = |text: &str| text.lines().map(str::trim_end).map(str::to_owned).collect::<Vec<_>>();
    let (printed, expected) = (lines(printed), lines(expected));
    printed.len() == expected.len() && printed.iter().zip(&expected).all(|(one, other)| matches(one, other))
}

fn matches(printed: &str, expected: &str) -> bool {
    let mut rest = printed;
    for (index, part) in expected.split('…').enumerate() {
        match rest.find(part) {
            Some(0) => rest = &rest[part.len()..],
            Some(at) if index > 0 => rest = &rest[at + part.len()..],
            _ => return false,
        }
    }
    rest.is_empty() || expected.ends_with('…')
}
