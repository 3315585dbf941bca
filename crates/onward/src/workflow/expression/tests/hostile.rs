//! Sources that are made to do harm: each ends in a value or an error, soon and within bounds.

use proptest::prelude::*;
use serde_json::json;

use super::super::bounds::{EXPRESSION_BYTES, EXPRESSION_DEPTH, EXPRESSION_OPERATIONS};
use super::super::{Budget, Expression, FailureCause, TextTemplate, Unfinished, ValueTemplate, exercise};
use super::fixture::{Run, all_are, all_refused, parsed, refused, value};

/// The stack of the threads that run these tests: a quarter of what tokio's threads have. It is
/// enough without optimization too.
const STACK: usize = 512 * 1024;

fn on_a_small_stack(test: fn()) {
    std::thread::Builder::new().stack_size(STACK).spawn(test).unwrap().join().unwrap();
}

/// Each opening repeated, with something within, and each closing repeated.
const NESTS: [(&str, &str, &str); 9] = [
    ("(", "1", ")"),
    ("[", "1", "]"),
    ("{'a': ", "1", "}"),
    ("!", "true", ""),
    ("- ", "size('a')", ""),
    ("size([", "", "])"),
    ("[1].map(x, ", "1", ")"),
    ("true ? (", "1", ") : 2"),
    ("input.l[", "0", "]"),
];

#[test]
fn two_thousand_terms_are_no_deep_tree() {
    on_a_small_stack(|| {
        let chain = |term: &str, sign: &str| vec![term; 2000].join(sign);
        assert_eq!(value(&chain("1", "+")), json!(2000).into());
        assert_eq!(value(&chain("1", "*")), json!(1).into());
        assert_eq!(value(&chain("1", "-")), json!(-1998).into());
        let either = format!("[false].map(x, {}x)", "x||".repeat(1300));
        assert_eq!(value(&either), json!([false]).into());
    });
}

#[test]
fn long_choices_and_long_paths_are_no_deep_trees() {
    on_a_small_stack(|| {
        let choice = "false?1:".repeat(500) + "2";
        all_are(&[(&choice, json!(2)), (&("true".to_owned() + &"&&true".repeat(600)), json!(true))]);
        let path = "input".to_owned() + &".a".repeat(2000);
        let run = Run::with_input(json!({"a": {"a": 1}}));
        assert_eq!(run.error(&path), "input.a.a is an int, which has no field `a`");
    });
}

#[test]
fn nests_end_at_the_bound_whatever_they_are_made_of() {
    on_a_small_stack(|| {
        for (open, inner, close) in NESTS {
            let nest = |levels: usize| open.repeat(levels) + inner + &close.repeat(levels);
            assert!(Expression::parse(&nest(EXPRESSION_DEPTH / 2 - 1)).is_ok(), "{open}");
            let error = refused(&nest(EXPRESSION_DEPTH + 1));
            assert!(error.contains("nests more than 64 levels"), "{open}: {error}");
            exercise(&nest(EXPRESSION_DEPTH / 2 - 1));
            exercise(&open.repeat(EXPRESSION_BYTES / open.len()));
        }
    });
}

#[test]
fn a_source_ends_at_the_bound() {
    let long = "1".to_owned() + &" + 1".repeat(EXPRESSION_BYTES / 4);
    all_refused(&[(&long, "longer than 4096 bytes"), (&format!("'{}'", "a".repeat(5000)), "longer than 4096 bytes")]);
    let text = format!("{}${{{{ 1 }}}}", "a".repeat(100_000));
    assert!(TextTemplate::parse(&text).is_ok());
    let text = format!("${{{{ {} }}}}", "1 + ".repeat(100_000));
    assert!(TextTemplate::parse(&text).unwrap_err().message.contains("longer than 4096 bytes"));
}

#[test]
fn macros_in_macros_end_at_the_bound_of_operations() {
    let run = Run::with_input(json!({"l": vec![1; 1000]}));
    let cause = |source: &str| run.evaluate(source).unwrap_err().error().map(|error| error.cause);
    for source in [
        "input.l.map(a, input.l.map(b, input.l.map(c, 1)))",
        "input.l.all(a, input.l.all(b, input.l.all(c, true)))",
        "input.l.exists(a, input.l.exists_one(b, input.l == input.l) && false)",
        "input.l.filter(a, input.l.exists(b, b in input.l && false))",
    ] {
        assert_eq!(cause(source), Some(FailureCause::ExpressionOperations), "{source}");
    }
}

/// A bound is no error that the other side could make harmless: else the work would go on.
#[test]
fn the_end_of_the_operations_is_not_hidden_by_a_side_that_decides() {
    let run = Run::with_input(json!({"l": vec![1; 1000]}));
    let source = "input.l.all(a, input.l.all(b, input.l.all(c, true))) && false";
    assert!(run.error(source).contains("more than 100000 operations"));
}

#[test]
fn values_that_double_end_before_memory_does() {
    let run = Run::with_input(json!({"s": "x".repeat(1000)}));
    let doubled = "['ab']".to_owned() + &".map(a, a + a)".repeat(60);
    assert!(run.error(&doubled).contains("more than 100000 operations"));
    let shared = "[input.s]".to_owned() + &".map(a, [a, a])".repeat(60);
    assert!(run.error(&shared).contains("the result is longer than 1048576 bytes"));
    assert!(run.error(&format!("json({shared})")).contains("more than 100000 operations"));
    assert!(run.error(&format!("{shared} == {shared}")).contains("more than 100000 operations"));
}

#[test]
fn values_that_nest_end_at_the_bound() {
    on_a_small_stack(|| {
        let run = Run::with_input(json!({}));
        let deep = "[1]".to_owned() + &".map(a, [[[[[[a]]]]]])".repeat(100);
        let error = run.evaluate(&deep).unwrap_err();
        assert_eq!(error.error().map(|error| error.cause), Some(FailureCause::Result));
        assert_eq!(error.error().unwrap().message, "lists and maps nest more than 100 levels");
    });
}

#[test]
fn an_input_that_nests_is_no_result_if_it_is_too_deep() {
    let deep = (0..110).fold(json!(1), |inner, _| json!([inner]));
    assert!(ValueTemplate::parse(&deep).unwrap_err().to_string().contains("nest more than 100 levels"));
    let run = Run::with_input(deep);
    assert_eq!(run.error("input"), "lists and maps nest more than 100 levels");
    assert_eq!(run.value("input == input"), true.into());
}

#[test]
fn a_result_ends_at_the_bound() {
    let run = Run::with_input(json!({"s": "x".repeat(600_000), "quotes": "\"".repeat(600_000)}));
    assert_eq!(run.value("input.s"), "x".repeat(600_000).into());
    assert!(run.error("[input.s, input.s]").contains("the result is longer than 1048576 bytes of JSON"));
    assert!(run.error("input.quotes").contains("the result is longer than"));
    let text = TextTemplate::parse("${{ input.s }}${{ input.s }}").unwrap();
    let error = text.evaluate(&run, &mut Budget::default()).unwrap_err();
    assert_eq!(error.to_string(), "the text is longer than 1048576 bytes");
    let value = ValueTemplate::parse(&json!(["${{ input.s }}", {"a": "${{ input.s }}"}])).unwrap();
    assert!(value.evaluate(&run, &mut Budget::default()).is_err());
}

#[test]
fn a_turn_shares_one_budget() {
    let run = Run::with_input(json!({"l": vec![1; 100]}));
    let expression = parsed("input.l.map(x, x + 1)");
    let budget = &mut Budget::default();
    let before = budget.left();
    expression.evaluate(&run, budget).unwrap();
    let taken = before - budget.left();
    assert!((300..1000).contains(&taken), "{taken}");
    let budget = &mut Budget::new(taken + taken / 2);
    assert!(expression.evaluate(&run, budget).is_ok());
    let error = expression.evaluate(&run, budget).unwrap_err();
    let Unfinished::Failed(error) = error else { panic!("{error}") };
    assert_eq!(error.cause, FailureCause::TurnOperations);
    assert_eq!(budget.left(), 0);
    assert!(parsed("1").evaluate(&run, budget).is_err());
}

/// Also where a pattern was compiled and its states built before.
#[test]
fn the_same_evaluation_always_costs_the_same() {
    let run = Run::with_input(json!({"l": ["abc", "abd", "x1"]}));
    let expression = parsed(r"input.l.filter(x, x.matches('^[a-c]+\\d?$') || x.matches('^' + x))");
    let costs: Vec<u64> = (0..3)
        .map(|_| {
            let budget = &mut Budget::new(EXPRESSION_OPERATIONS);
            expression.evaluate(&run, budget).unwrap();
            EXPRESSION_OPERATIONS - budget.left()
        })
        .collect();
    assert_eq!(costs[0], costs[1]);
    assert_eq!(costs[1], costs[2]);
}

/// The examples that others are made of.
const SEEDS: [&str; 6] = [
    "steps.orders.result.rows > 0 && input.day.startsWith('2026-') || !(index in [1, 2.5, -3e2])",
    "${{ input.l.filter(x, x.n == 1u).map(y, {'k': y, \"s\": string(y)}) }}",
    r#"text ${{ get(steps.a.result, "id", null) }} $${{ and ${{ input.m["k"] ? 1 : 2 / 0 }}"#,
    r"'é\u00e9\ud83d\ude80'.matches('^\\w+(a|b)*$') && has(input.m.k)",
    "timestamp('2026-05-04T10:00:00Z') + duration('1h30m') > timestamp(5) - duration('1.5s')",
    "input.s.split('').join(input.s.replace('t', '\\n')).trim().upperAscii() + json(input)",
];

#[test]
fn every_truncation_of_an_expression_is_handled() {
    for seed in SEEDS {
        for (at, _) in seed.char_indices() {
            exercise(&seed[..at]);
            exercise(&seed[at..]);
        }
    }
}

/// Parts that make up most sources, right or wrong.
fn part() -> impl Strategy<Value = String> {
    let words = prop::sample::select(vec![
        "input",
        "input.l",
        "input.m",
        "input.s",
        "steps.a",
        "steps.b.result",
        "item",
        "index",
        "x",
        "true",
        "null",
        "1",
        "2.5",
        "7u",
        "18446744073709551615",
        "'a'",
        "\"b\"",
        "'\\n'",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "{'k': ",
        ",",
        ":",
        "?",
        ".",
        ".size()",
        ".map(x, ",
        ".all(x, ",
        ".matches('",
        "'",
        "size(",
        "get(",
        "has(",
        "json(",
        "timestamp(",
        "duration(",
        "&&",
        "||",
        "!",
        "-",
        "+",
        "*",
        "/",
        "%",
        "==",
        "<",
        "in",
        "${{",
        "}}",
        "$${{",
        " ",
        "é",
        "\\",
        "\u{0}",
    ]);
    words.prop_map(str::to_owned)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_handled(source in "\\PC{0,80}") {
        exercise(&source);
    }

    #[test]
    fn any_parts_are_handled(parts in prop::collection::vec(part(), 0..24)) {
        exercise(&parts.join(" "));
        exercise(&parts.concat());
        exercise(&format!("${{{{ {} }}}}", parts.concat()));
    }

    #[test]
    fn an_expression_with_a_change_is_handled(seed in prop::sample::select(SEEDS.to_vec()), at in any::<prop::sample::Index>(), part in part()) {
        let places: Vec<usize> = seed.char_indices().map(|(at, _)| at).collect();
        let at = places[at.index(places.len())];
        exercise(&format!("{}{part}{}", &seed[..at], &seed[at..]));
    }
}
