//! Metrics.

use std::collections::BTreeSet;

use onward_server::http::METRICS;
use serde_json::json;

use crate::api::Api;

on_every_store! {
    metrics_have_queues_kinds_and_requests,
}

const GUIDE: &str = include_str!("../../../../docs/guides/http-api.md");
const DASHBOARD: &str = include_str!("../../../../docs/guides/grafana.json");

/// Shows: W8
async fn metrics_have_queues_kinds_and_requests(api: Api) {
    api.submit("k").await;
    api.submit("k").await;
    api.post("/v1/tasks/1/cancel", json!({})).await.expect(200);
    api.put("/v1/limits/kind:k", json!({"concurrency": 2})).await.expect(200);
    api.clock.advance(std::time::Duration::from_millis(1500));
    let response = api.get("/metrics").await;
    assert_eq!(response.header("content-type"), Some("text/plain; version=0.0.4"));
    let text = response.text();
    for line in [
        "onward_tasks{queue=\"default\",state=\"waiting\"} 1",
        "onward_oldest_waiting_seconds{queue=\"default\"} 1.5",
        "onward_queue_paused{queue=\"default\"} 0",
        "onward_tasks_ended_total{kind=\"k\",state=\"cancelled\"} 1",
        "onward_limit_running{scope=\"kind:k\"} 0",
        "onward_http_requests_total{status=\"2xx\"} 4",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}: {text}");
    }
    for metric in METRICS {
        assert!(text.contains(&format!("# TYPE {} {}\n", metric.name, metric.kind)), "{}: {text}", metric.name);
    }
}

/// Shows: W8
#[test]
fn the_guide_lists_every_metric() {
    for metric in METRICS {
        let labels: Vec<String> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
        let labels = if labels.is_empty() { "–".to_owned() } else { labels.join(" ") };
        let row = format!("| `{}` | {} | {labels} | {} |", metric.name, metric.kind, metric.help);
        assert!(GUIDE.contains(&row), "{row}");
    }
}

/// Shows: W8
#[test]
fn the_dashboard_uses_metrics_that_exist() {
    let names: BTreeSet<&str> = METRICS.iter().map(|metric| metric.name).collect();
    let is_part = |character: char| character.is_ascii_alphanumeric() || character == '_';
    let used: BTreeSet<&str> =
        DASHBOARD.split(|character: char| !is_part(character)).filter(|word| word.starts_with("onward_")).collect();
    assert!(used.len() >= 5 && used.is_subset(&names), "{used:?}");
    assert!(serde_json::from_str::<serde_json::Value>(DASHBOARD).is_ok());
}
