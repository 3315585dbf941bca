//! The canonical form and its hash.

use proptest::prelude::*;

use super::super::TemplateFile;
use super::examples::EXAMPLES;

fn file(text: &str) -> TemplateFile {
    TemplateFile::read("test.yaml", text).unwrap_or_else(|errors| panic!("{errors}\n{text}"))
}

#[test]
fn comments_order_and_layout_do_not_change_the_hash() {
    let flow = "{name: n, steps: {b: {task: t, with: {x: 1, y: [a, b]}, depends_on: [a]}, a: {run: echo}}}";
    let block = "# A comment.\nsteps:\n  a:\n    run: 'echo'   # another\n  b:\n    depends_on:\n    - a\n    with:\n      y: [a,\n        \"b\"]\n      x: 1\n    task: t\nname: n\n";
    assert_eq!(file(flow).hash(), file(block).hash());
    assert_eq!(file(flow).canonical(), file(block).canonical());
}

#[test]
fn anchors_and_merge_keys_do_not_change_the_hash() {
    let plain = "steps:\n  a: {task: t, retry: 3, timeout: 1m}\n  b: {task: u, retry: 3, timeout: 2m}\n";
    let merged = "steps:\n  a: &a {task: t, retry: 3, timeout: 1m}\n  b: {<<: *a, task: u, timeout: 2m}\n";
    assert_eq!(file(plain).hash(), file(merged).hash());
}

#[test]
fn content_changes_the_hash() {
    let texts = [
        "- a\n",
        "- b\n",
        "- a\n- b\n",
        "name: x\nsteps: [a]\n",
        "version: '1'\nsteps: [a]\n",
        "environments: {e: {timeout: 1s}}\nsteps: [a]\n",
    ];
    let hashes: std::collections::BTreeSet<_> = texts.map(|text| file(text).hash()).into_iter().collect();
    assert_eq!(hashes.len(), texts.len());
}

#[test]
fn the_hash_is_sha_256_of_sorted_json() {
    let read = file("- echo\n");
    assert_eq!(read.canonical(), r#"{"name":"test","steps":{"step_1":{"run":"echo"}}}"#);
    assert_eq!(read.hash().to_string(), "1994e5535bca23b822efd2c7b47385f0361609b9d3ca348f58d78b7154025a28");
    assert_eq!(read.label(), read.hash().to_string()[..12]);
    assert_eq!(file("version: beta\nsteps: [a]\n").label(), "beta");
}

#[test]
fn the_canonical_form_is_read_as_the_same_template() {
    for (name, text) in EXAMPLES {
        let first = TemplateFile::read(name, text).unwrap();
        let second = TemplateFile::read("canonical", first.canonical()).unwrap();
        assert_eq!(second.canonical(), first.canonical(), "{name}");
        assert_eq!(format!("{:?}", second.template()), format!("{:?}", first.template()), "{name}");
    }
}

proptest! {
    #[test]
    fn every_value_is_in_the_canonical_form_as_it_was(value in value()) {
        let text = serde_json::json!({ "steps": { "a": { "task": "t", "with": value } } }).to_string();
        let canonical = file(&text).canonical().to_owned();
        let read: serde_json::Value = serde_json::from_str(&canonical).unwrap();
        prop_assert_eq!(&read["steps"]["a"]["with"], &value);
        let again = file(&canonical);
        prop_assert_eq!(again.canonical(), canonical);
    }
}

/// Returns any value, without the beginning of an expression in its texts.
fn value() -> impl Strategy<Value = serde_json::Value> {
    let text = any::<String>().prop_filter("no expression", |text| !text.contains("${{"));
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<u64>().prop_map(Into::into),
        any::<f64>().prop_filter("finite", |number| number.is_finite()).prop_map(Into::into),
        text.clone().prop_map(Into::into),
    ];
    leaf.prop_recursive(4, 32, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Into::into),
            proptest::collection::btree_map(text.clone(), inner, 0..6)
                .prop_map(|map| map.into_iter().collect::<serde_json::Map<_, _>>().into()),
        ]
    })
}
