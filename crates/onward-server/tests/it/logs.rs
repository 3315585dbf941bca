//! The log of the server.

use std::io;
use std::sync::{Arc, Mutex};

use onward_server::http::Role;
use onward_store::{ManualClock, MemoryStore};
use serde_json::json;
use tracing_subscriber::filter::LevelFilter;

use crate::api::Api;

/// A writer that keeps what is written.
#[derive(Debug, Clone, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl io::Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Shows: W8
#[test]
fn the_log_has_changes_but_no_payload_and_no_key() {
    // `tracing` keeps for the whole process which lines have a log, so tests beside
    // this one would decide about its lines.
    let tests = std::env::current_exe().unwrap();
    let child = std::process::Command::new(tests)
        .args(["--exact", "logs::a_process_that_keeps_its_log", "--ignored", "--nocapture"])
        .output()
        .unwrap();
    let (printed, errors) = (String::from_utf8_lossy(&child.stdout), String::from_utf8_lossy(&child.stderr));
    assert!(child.status.success() && printed.contains("1 passed"), "{printed}\n{errors}");
}

#[test]
#[ignore = "a process started by the test above"]
fn a_process_that_keeps_its_log() {
    let kept = Kept::default();
    let writer = kept.clone();
    let log = tracing_subscriber::fmt().with_max_level(LevelFilter::TRACE).with_writer(move || writer.clone()).finish();
    let _guard = tracing::subscriber::set_default(log);
    // The thread that keeps the log is the only one.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let key = runtime.block_on(async {
        let clock = Arc::new(ManualClock::default());
        let api = Api::start(Arc::new(MemoryStore::with_clock(clock.clone())), clock).await;
        let request = api.request("POST", "/v1/tasks").header("idempotency-key", "idempotency-secret");
        let task = json!({"kind": "k", "payload": "payload-secret", "tags": {"t": "v"}});
        let submitted = api.send(request.json(&task)).await;
        submitted.expect(201);
        api.post("/v1/tasks/1/cancel", json!({})).await.expect(200);
        api.post("/v1/tasks", json!({"kind": " wrong", "payload": "payload-secret"}))
            .await
            .expect_problem(422, "invalid");
        let created = api.post("/v1/keys", json!({"name": "n", "role": "viewer"})).await.expect(201);
        let id = created["record"]["id"].as_str().unwrap();
        let (_, secret) = created["key"].as_str().unwrap().split_once(&format!("{id}_")).unwrap();
        [api.key(Role::Admin).to_owned(), secret.to_owned()]
    });
    let log = String::from_utf8(kept.0.lock().unwrap().clone()).unwrap();
    assert!(log.contains("/v1/tasks/1/cancel"), "{log}");
    for secret in ["payload-secret", "idempotency-secret", &key[0], &key[1]] {
        assert!(!log.contains(secret), "{log}");
    }
}
