//! Texts and values that hold expressions.

use serde_json::json;

use super::super::{Budget, TextTemplate, Unfinished, Value, ValueTemplate};
use super::fixture::Run;

fn run() -> Run {
    Run::with_input(json!({
        "s": "Graz", "n": 5, "d": 2.0, "b": true, "none": null, "list": [1, 2.5], "map": {"k": "v"},
    }))
}

#[test]
fn an_expression_alone_keeps_its_type() {
    let run = run();
    for (source, expected) in [
        ("${{ input.n }}", json!(5)),
        ("${{ input.d }}", json!(2.0)),
        ("${{ input.none }}", json!(null)),
        ("${{ input.list }}", json!([1, 2.5])),
        ("${{input.map}}", json!({"k": "v"})),
        ("${{ {'a': {'b': 1}}}}", json!({"a": {"b": 1}})),
    ] {
        assert_eq!(run.text(source), expected.into(), "{source}");
    }
}

#[test]
fn between_texts_texts_numbers_and_bools_are_put_in() {
    let run = run();
    for (source, expected) in [
        ("to ${{ input.s }}!", "to Graz!"),
        ("${{ input.n }}${{ input.d }}", "52"),
        (" ${{ input.b }}", " true"),
        ("${{ input.n }}\n", "5\n"),
        ("", ""),
        ("plain", "plain"),
    ] {
        assert_eq!(run.text(source), Value::from(expected), "{source:?}");
    }
}

#[test]
fn null_lists_and_maps_are_not_put_into_a_text() {
    for (name, shown) in [("none", "null"), ("list", "a list"), ("map", "a map")] {
        let text = TextTemplate::parse(&format!("x ${{{{ input.{name} }}}}")).unwrap();
        let Err(Unfinished::Failed(error)) = text.evaluate(&run(), &mut Budget::default()) else { panic!("{name}") };
        assert_eq!(error.message, format!("{shown} has no text; json(x) writes it as JSON"));
        assert_eq!(&text.source()[error.span.clone()], format!("input.{name}"));
    }
    assert_eq!(run().text("x ${{ json(input.list) }}"), Value::from("x [1,2.5]"));
}

#[test]
fn a_field_that_is_a_text_takes_an_expression_alone_as_one() {
    let text = |source: &str| TextTemplate::parse(source).unwrap().evaluate_text(&run(), &mut Budget::default());
    assert_eq!(text("${{ input.n }}").as_deref(), Ok("5"));
    assert_eq!(text("a").as_deref(), Ok("a"));
    assert!(text("${{ input.list }}").is_err());
}

#[test]
fn a_dollar_has_a_meaning_only_before_two_braces() {
    let run = run();
    for (source, expected) in [
        ("$${{ input.n }}", "${{ input.n }}"),
        ("a $${{ b", "a ${{ b"),
        ("$$${{ x }}", "$${{ x }}"),
        ("${{ input.n }} $${{ ${{ input.n }}", "5 ${{ 5"),
        ("$NAME ${NAME} $ $$ ${ {", "$NAME ${NAME} $ $$ ${ {"),
        ("{{ x }} }} '\"\\n", "{{ x }} }} '\"\\n"),
    ] {
        assert_eq!(run.text(source), Value::from(expected), "{source}");
    }
}

#[test]
fn an_error_in_a_text_has_the_bytes_of_the_text() {
    let error = TextTemplate::parse("é ${{ input.a + }} x").unwrap_err();
    assert_eq!((error.span, error.message.as_str()), (17..18, "expected a value, and there is `}`"));
    let error = TextTemplate::parse("a ${{ input.a").unwrap_err();
    assert_eq!((error.span, error.message.as_str()), (2..5, "`${{` needs a `}}` behind its expression"));
    let error = TextTemplate::parse("a ${{ 'x").unwrap_err();
    assert_eq!(error.span, 6..8);
}

#[test]
fn a_text_without_expressions_is_known_before_the_run() {
    let constant = |source: &str| TextTemplate::parse(source).unwrap().constant().map(str::to_owned);
    assert_eq!(constant("a $${{ b").as_deref(), Some("a ${{ b"));
    assert_eq!(constant("").as_deref(), Some(""));
    assert_eq!(constant("${{ 1 }}"), None);
}

#[test]
fn every_text_in_lists_and_maps_is_one_of_these() {
    let source = json!({
        "n": "${{ input.n }}", "list": ["${{ input.list }}", "a ${{ input.s }}", 7, null], "plain": {"x": [true, 1.0]},
    });
    let template = ValueTemplate::parse(&source).unwrap();
    let value = template.evaluate(&run(), &mut Budget::default()).unwrap();
    let expected = json!({"n": 5, "list": [[1, 2.5], "a Graz", 7, null], "plain": {"x": [true, 1.0]}});
    assert_eq!(value, expected.into());
    let places: Vec<String> = template.texts().iter().map(|(path, _)| path.to_string()).collect();
    assert_eq!(places, ["list[0]", "list[1]", "n"]);
    assert_eq!(template.names().len(), 3);
}

#[test]
fn a_value_without_expressions_is_known_before_the_run() {
    let source = json!({"a": [1, "x $${{ y"], "b": {}});
    let template = ValueTemplate::parse(&source).unwrap();
    assert_eq!(template.constant(), Some(&json!({"a": [1, "x ${{ y"], "b": {}}).into()));
}

#[test]
fn errors_in_a_value_have_the_path_to_the_text() {
    let source = json!({"to": [{"mail-to": "${{ input.adress }}"}], "a": 1});
    let template = ValueTemplate::parse(&source).unwrap();
    let Err(Unfinished::Failed(error)) = template.evaluate(&run(), &mut Budget::default()) else { panic!() };
    assert_eq!((error.path.to_string(), error.span), ("to[0][\"mail-to\"]".to_owned(), 9..16));
    let error = ValueTemplate::parse(&json!({"a": {"b": ["", "${{ 1 +"]}})).unwrap_err();
    assert_eq!((error.path.to_string(), error.in_key, error.error.span), ("a.b[1]".to_owned(), false, 7..7));
}

#[test]
fn a_key_holds_no_expression() {
    let error = ValueTemplate::parse(&json!({"a": {"x-${{ input.n }}": 1}})).unwrap_err();
    assert_eq!((error.in_key, error.error.span.clone()), (true, 2..5));
    assert!(error.to_string().starts_with("a key cannot hold `${{`"), "{error}");
}

#[test]
fn a_template_is_built_from_parts_as_it_is_parsed_from_json() {
    let text = |source: &str| ValueTemplate::text(TextTemplate::parse(source).unwrap());
    let list = ValueTemplate::list(vec![text("${{ input.n }}"), text("x")]);
    let built = ValueTemplate::map([("a".into(), list), ("b".into(), text("y"))].into()).unwrap();
    assert_eq!(built, ValueTemplate::parse(&json!({"a": ["${{ input.n }}", "x"], "b": "y"})).unwrap());
}
