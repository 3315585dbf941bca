//! Values from JSON and back.

use proptest::prelude::*;
use serde_json::json;

use super::super::Value;

fn any_json() -> impl Strategy<Value = serde_json::Value> {
    let number = prop_oneof![
        any::<i64>().prop_map(|number| json!(number)),
        any::<u64>().prop_map(|number| json!(number)),
        any::<f64>()
            .prop_filter("JSON has finite numbers", |number| number.is_finite())
            .prop_map(|number| json!(number)),
        (-5_i64..5).prop_map(|number| json!(number)),
    ];
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(|value| json!(value)),
        number,
        "\\PC{0,8}".prop_map(|text| json!(text)),
    ];
    leaf.prop_recursive(5, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(serde_json::Value::from),
            prop::collection::btree_map("\\PC{0,4}", inner, 0..6).prop_map(|map| json!(map)),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn json_is_the_same_after_a_value_was_made_of_it(json in any_json()) {
        let value = Value::from(&json);
        prop_assert_eq!(&serde_json::Value::from(&value), &json);
        prop_assert_eq!(serde_json::to_string(&value).unwrap(), json.to_string());
        prop_assert_eq!(&serde_json::from_value::<Value>(json.clone()).unwrap(), &value);
        // The parser may miss the last bit of a double, so both sides are read by it.
        let text = json.to_string();
        let read: serde_json::Value = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), Value::from(&read));
    }
}

#[test]
fn each_number_has_the_type_that_it_is_written_with() {
    let text = "[100,100.0,-1,9223372036854775807,9223372036854775808,18446744073709551615,1e2]";
    let value: Value = serde_json::from_str(text).unwrap();
    let types: Vec<&str> = value.as_list().unwrap().iter().map(Value::type_name).collect();
    assert_eq!(types, ["int", "double", "int", "int", "uint", "uint", "double"]);
    let written = serde_json::to_string(&value).unwrap();
    assert_eq!(written, text.replace("1e2", "100.0"));
}

#[test]
fn texts_with_zero_bytes_and_signs_are_kept() {
    let json = json!({"\0": "a\0b", "": "\u{ffff}\u{1f680}\"\\"});
    assert_eq!(serde_json::Value::from(Value::from(&json)), json);
}
