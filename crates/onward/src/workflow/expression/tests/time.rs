//! Timestamps and durations.

use serde_json::json;

use super::super::{Value, duration_text, parse_duration};
use super::fixture::{all_are, all_fail, all_refused, all_true, value};

#[test]
fn a_timestamp_is_read_as_rfc_3339_or_from_seconds() {
    all_are(&[
        ("string(timestamp('2026-05-04T10:00:00Z'))", json!("2026-05-04T10:00:00Z")),
        ("string(timestamp('2026-05-04T10:00:00.250-01:30'))", json!("2026-05-04T11:30:00.25Z")),
        ("string(timestamp(86400))", json!("1970-01-02T00:00:00Z")),
        ("string(timestamp(timestamp(0)))", json!("1970-01-01T00:00:00Z")),
        ("string(timestamp('0001-01-01T00:00:00Z'))", json!("0001-01-01T00:00:00Z")),
    ]);
}

#[test]
fn a_wrong_timestamp_is_refused_before_the_run_where_it_is_written_down() {
    for wrong in [
        "",
        "now",
        "2026-05-04",
        "2026-05-04 10:00:00Z",
        "2026-05-04T10:00:00",
        "2026-05-04T10:00Z",
        "20260504T100000Z",
        "2026-13-04T10:00:00Z",
        "2026-05-04T10:00:00.Z",
        "2026-05-04T10:00:00+2",
        "2026-05-04T10:00:00[UTC]",
        "2026-05-04T10:00:00Zé",
        "-002026-05-04T10:00:00Z",
        "0000-05-04T10:00:00Z",
    ] {
        all_refused(&[(&format!("timestamp('{wrong}')"), "is not a timestamp; write it as 2026-05-04T10:00:00Z")]);
    }
    all_fail(&[
        ("timestamp('now' + '')", "`now` is not a timestamp"),
        ("timestamp(1.5)", "`timestamp` takes a text or the seconds since 1970, and this is a double"),
        ("timestamp(-62135596801)", "beyond the years 1 to 9999"),
        ("timestamp(9223372036854775807)", "beyond the years 1 to 9999"),
    ]);
}

#[test]
fn a_duration_is_read_with_the_units_of_templates() {
    all_true(&[
        "duration('90s') == duration('1m30s')",
        "duration('1d') == duration('24h')",
        "duration('250ms') == duration('0.25s')",
        "duration('1h30m') == duration('1.5h')",
        "duration('1w') == duration('7d')",
        "duration('-1m') == -duration('60s')",
        "duration(duration('1s')) == duration('1s')",
    ]);
}

#[test]
fn a_wrong_duration_is_refused_before_the_run_where_it_is_written_down() {
    for wrong in [
        "",
        "-",
        "5",
        "s",
        "1 h",
        "w",
        "1y",
        "1h 30m",
        ".5s",
        "1.s",
        "--1s",
        "1e3s",
        "é",
        "1us",
        "9999999999999999999d",
    ] {
        all_refused(&[(&format!("duration('{wrong}')"), "is not a duration; write it as 250ms, 90s, 1h30m, 3d or 2w")]);
    }
    all_fail(&[("duration(90)", "`duration` takes a text such as '1h30m', and this is an int")]);
}

#[test]
fn the_text_of_a_duration_is_read_again_as_the_same() {
    for text in ["0s", "5400s", "-0.25s", "0.000000001s", "-86400.5s"] {
        let duration = parse_duration(text).unwrap();
        assert_eq!(duration_text(duration), text);
    }
    assert_eq!(value("string(duration('1ms'))"), Value::from("0.001s"));
}

#[test]
fn moments_and_durations_are_added_and_subtracted() {
    all_true(&[
        "timestamp('2026-01-31T00:00:00Z') + duration('1d') == timestamp('2026-02-01T00:00:00Z')",
        "duration('1h') + timestamp(0) == timestamp(3600)",
        "timestamp(3600) - duration('1h') == timestamp(0)",
        "timestamp(10) - timestamp(70) == duration('-1m')",
        "duration('1h') - duration('30m') + duration('1m') == duration('31m')",
    ]);
    all_fail(&[
        ("timestamp(0) + timestamp(0)", "`+` does not take a timestamp and a timestamp"),
        ("duration('1s') - timestamp(0)", "`-` does not take a duration and a timestamp"),
        ("timestamp(0) + 1", "`+` does not take a timestamp and an int"),
        ("duration('1s') * 2", "`*` does not take a duration and an int"),
    ]);
}

#[test]
fn moments_end_with_the_year_9999_and_begin_with_the_year_1() {
    all_fail(&[
        ("timestamp('9999-12-30T00:00:00Z') + duration('9d')", "the timestamp is beyond the years 1 to 9999"),
        ("timestamp('0001-01-01T00:00:00Z') - duration('1s')", "the timestamp is beyond"),
    ]);
}

#[test]
fn times_are_texts_in_json() {
    let made: serde_json::Value = value("[timestamp(0), duration('1m')]").into();
    assert_eq!(made, json!(["1970-01-01T00:00:00Z", "60s"]));
}

#[test]
fn a_moment_of_the_store_is_a_timestamp_of_expressions() {
    let second = onward_store::Timestamp::from_microseconds(1_500_000);
    assert_eq!(serde_json::Value::from(Value::from(second)), json!("1970-01-01T00:00:01.5Z"));
    let first = Value::from(onward_store::Timestamp::MIN);
    assert_eq!(serde_json::Value::from(first), json!("0001-01-01T00:00:00Z"));
    let last = Value::from(onward_store::Timestamp::MAX);
    assert_eq!(serde_json::Value::from(last), json!("9999-12-30T22:00:00Z"));
}
