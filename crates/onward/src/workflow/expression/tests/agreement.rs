//! Generated expressions have the value that another implementation of CEL gives them.
//!
//! Where it refuses arithmetic of an int and a double, ours may give a value. Nothing else differs
//! in what is generated here. That leaves out doubles that are not finite, which ours refuses, and
//! large ones: the implementations of CEL write them in different ways, and this one rounds an int
//! where it is compared with a double.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use cel::objects::Key;
use cel::{Context, Env, ExecutionError};
use proptest::prelude::*;
use serde_json::json;

use super::super::{Budget, Expression, Unfinished, Value};
use super::fixture::Run;

static ENVIRONMENT: LazyLock<Arc<Env>> = LazyLock::new(|| {
    let mut environment = Env::stdlib();
    environment.add_extension(cel::extensions::strings).unwrap();
    Arc::new(environment)
});

fn input() -> serde_json::Value {
    json!({
        "i": 7, "d": 2.5, "s": "order-17", "b": true, "n": null,
        "l": [1, 2, 3], "t": ["a", "B", ""], "m": {"k": "v", "n": 4}, "mixed": [1, "a", 2.0, null, [1], false],
    })
}

fn ours(source: &str) -> Result<Value, String> {
    let expression = Expression::parse(source).map_err(|error| error.to_string())?;
    match expression.evaluate(&Run::with_input(input()), &mut Budget::default()) {
        Ok(value) => Ok(value),
        Err(Unfinished::Failed(error)) => Err(error.to_string()),
        Err(needs) => panic!("{source}: {needs}"),
    }
}

fn theirs(source: &str) -> Result<cel::Value, ExecutionError> {
    let program = ENVIRONMENT.compile(source).unwrap_or_else(|error| panic!("{source}: {error}"));
    let mut context = Context::with_env(ENVIRONMENT.clone());
    context.add_variable_from_value("input", given(&input().into()));
    program.execute(&context)
}

/// Returns the same value for the other implementation.
fn given(value: &Value) -> cel::Value {
    match value {
        Value::Null => cel::Value::Null,
        Value::Bool(value) => cel::Value::Bool(*value),
        Value::Int(number) => cel::Value::Int(*number),
        Value::Double(number) => cel::Value::Float(*number),
        Value::Text(text) => cel::Value::String(Arc::new(text.to_string())),
        Value::List(items) => cel::Value::List(Arc::new(items.iter().map(given).collect())),
        Value::Map(map) => {
            let entries: HashMap<Key, cel::Value> =
                map.iter().map(|(key, value)| (Key::from(key.to_string()), given(value))).collect();
            cel::Value::Map(entries.into())
        }
        other => panic!("{other:?}"),
    }
}

/// Returns whether two values are equal, their types included.
fn is_same(ours: &Value, theirs: &cel::Value) -> bool {
    match (ours, theirs) {
        (Value::Null, cel::Value::Null) => true,
        (Value::Bool(one), cel::Value::Bool(other)) => one == other,
        (Value::Int(one), cel::Value::Int(other)) => one == other,
        (Value::Uint(one), cel::Value::UInt(other)) => one == other,
        (Value::Double(one), cel::Value::Float(other)) => one == other,
        (Value::Text(one), cel::Value::String(other)) => **one == ***other,
        (Value::List(one), cel::Value::List(other)) => {
            one.len() == other.len() && one.iter().zip(other.iter()).all(|(one, other)| is_same(one, other))
        }
        (Value::Map(one), cel::Value::Map(other)) => {
            one.len() == other.map.len()
                && one.iter().all(|(key, value)| {
                    let key = Key::from(key.to_string());
                    other.map.get(&key).is_some_and(|other| is_same(value, other))
                })
        }
        _ => false,
    }
}

/// Checks that both give the same value, or none. With `mixed`, ours may give one where theirs
/// gives none.
fn check(source: &str, mixed: bool) -> Result<(), TestCaseError> {
    let (ours, theirs) = (ours(source), theirs(source));
    let agree = match (&ours, &theirs) {
        (Ok(one), Ok(other)) => is_same(one, other),
        (Ok(_), Err(_)) => mixed,
        (Err(_), Ok(_)) => false,
        (Err(_), Err(_)) => true,
    };
    prop_assert!(agree, "{}\nours: {:?}\ntheirs: {:?}", source, ours, theirs);
    Ok(())
}

/// Sources by the type of their value, if they have one.
#[derive(Clone)]
struct Sources {
    int: BoxedStrategy<String>,
    double: BoxedStrategy<String>,
    bool: BoxedStrategy<String>,
    text: BoxedStrategy<String>,
    ints: BoxedStrategy<String>,
    texts: BoxedStrategy<String>,
}

fn one_of(sources: &'static [&'static str]) -> BoxedStrategy<String> {
    prop::sample::select(sources).prop_map(str::to_owned).boxed()
}

/// Fills each `{}` of a form with one of the sources.
fn filled(form: &'static str, parts: Vec<BoxedStrategy<String>>) -> BoxedStrategy<String> {
    let fill = move |parts: Vec<String>| parts.iter().fold(form.to_owned(), |form, part| form.replacen("{}", part, 1));
    parts.prop_map(fill).boxed()
}

/// Returns a strategy that takes one of some, each as often as the others.
fn any_of(strategies: Vec<BoxedStrategy<String>>) -> BoxedStrategy<String> {
    prop::strategy::Union::new(strategies).boxed()
}

fn leaves() -> Sources {
    Sources {
        int: one_of(&["0", "1", "-3", "42", "9223372036854775807", "-9223372036854775808", "input.i", "input.m.n"]),
        double: one_of(&["0.0", "1.0", "-2.5", "1e3", "0.125", "input.d"]),
        bool: one_of(&["true", "false", "input.b", "has(input.x)", "has(input.m.k)"]),
        text: one_of(&["''", "'a'", "string(-2.5)", "string(1.0)", "'é🚀'", "'12'", "'-'", "input.s", "input.m['k']"]),
        ints: one_of(&["[]", "[1, 2]", "[0]", "input.l"]),
        texts: one_of(&["[]", "['a', 'é']", "input.t"]),
    }
}

impl Sources {
    /// Returns sources that have these as parts.
    #[expect(clippy::too_many_lines, reason = "a list of the forms of expressions, one a line")]
    fn deeper(&self) -> Self {
        let Self { int, double, bool, text, ints, texts } = self.clone();
        let any = any_of(vec![
            int.clone(),
            double.clone(),
            bool.clone(),
            text.clone(),
            ints.clone(),
            one_of(&[
                "null",
                "5u",
                "input.n",
                "input.x",
                "input.mixed",
                "input.l[1]",
                "{'a': 1}",
                "{'k': 'v', 'n': 4}",
            ]),
        ]);
        let of = |form: &'static str, parts: &[&BoxedStrategy<String>]| {
            filled(form, parts.iter().map(|part| (*part).clone()).collect())
        };
        Self {
            int: any_of(vec![
                int.clone(),
                of("{} + {}", &[&int, &int]),
                of("({} - {})", &[&int, &int]),
                of("{} * {}", &[&int, &int]),
                of("({} / {})", &[&int, &int]),
                of("({} % {})", &[&int, &int]),
                of("-({})", &[&int]),
                of("({} ? {} : {})", &[&bool, &int, &int]),
                of("size({})", &[&any_of(vec![text.clone(), ints.clone(), texts.clone(), any.clone()])]),
                of("int({})", &[&any_of(vec![text.clone(), double.clone(), int.clone(), one_of(&["'7'", "'-7'"])])]),
                of("{}[{}]", &[&ints, &one_of(&["0", "1", "-1", "2"])]),
            ]),
            double: any_of(vec![
                double.clone(),
                of("({} + {})", &[&double, &double]),
                of("({} - {})", &[&double, &double]),
                of("({} * {})", &[&double, &double]),
                of("({} / {})", &[&double, &one_of(&["2.0", "-0.5"])]),
                of("double({})", &[&one_of(&["7", "-3", "input.i", "'1.5'", "'x'"])]),
            ]),
            bool: any_of(vec![
                bool.clone(),
                of("{} && {}", &[&bool, &bool]),
                of("({} || {})", &[&bool, &bool]),
                of("({} && {} || !({}))", &[&bool, &any, &bool]),
                of("!({})", &[&bool]),
                of("({} == {})", &[&any, &any]),
                of("({} != {})", &[&any, &any]),
                of("({} < {})", &[&int, &int]),
                of("({} <= {})", &[&text, &text]),
                of("({} > {})", &[&double, &double]),
                of("({} >= {})", &[&any, &any]),
                of("({} in {})", &[&any, &any_of(vec![ints.clone(), one_of(&["input.mixed", "{'a': 1}"])])]),
                of("{}.all(x, {})", &[&ints, &over_elements(&any)]),
                of("{}.exists(x, {})", &[&ints, &over_elements(&any)]),
                of("{}.exists_one(x, {})", &[&ints, &over_elements(&any)]),
                of("({}).startsWith({})", &[&text, &text]),
                of("({}).endsWith({})", &[&text, &text]),
                of("({}).contains({})", &[&text, &text]),
                of("({}).matches({})", &[&text, &one_of(&["'^[a-z]+'", "'1{2}|7$'", "'.'", "''"])]),
            ]),
            text: any_of(vec![
                text.clone(),
                of("({} + {})", &[&text, &text]),
                of("string({})", &[&any_of(vec![int.clone(), text.clone(), bool.clone()])]),
                of("({}).lowerAscii()", &[&text]),
                of("({}).upperAscii()", &[&text]),
                of("(' ' + {}).trim()", &[&text]),
                of("({}).replace({}, {})", &[&text, &one_of(&["'a'", "'-'", "'1'"]), &text]),
                of("{}.join({})", &[&texts, &text]),
                of("({} ? {} : {})", &[&bool, &text, &text]),
            ]),
            ints: any_of(vec![
                ints.clone(),
                of("[{}, {}]", &[&int, &int]),
                of("({} + {})", &[&ints, &ints]),
                of("{}.map(x, {})", &[&ints, &one_of(&["x", "x * 2", "x / (x - 1)", "size([x])"])]),
                of("{}.filter(x, {})", &[&ints, &over_elements(&any)]),
            ]),
            texts: any_of(vec![
                texts.clone(),
                of("[{}, {}]", &[&text, &text]),
                of("({}).split({})", &[&text, &one_of(&["'-'", "'a'", "', '"])]),
                of("{}.map(x, x + {})", &[&texts, &text]),
                of("{}.filter(x, x != {})", &[&texts, &text]),
            ]),
        }
    }
}

/// Returns conditions on the variable `x`, some of which fail.
fn over_elements(any: &BoxedStrategy<String>) -> BoxedStrategy<String> {
    let fixed = one_of(&["x > 1", "x == 2", "x in [1, 3]", "10 / x > 3", "[x].exists(y, y == x)", "x", "true"]);
    any_of(vec![fixed, filled("x == {}", vec![any.clone()])])
}

impl Sources {
    /// Returns the same sources, with arithmetic of integers and doubles as well.
    fn mixed(self) -> Self {
        let forms = ["({} + {})", "({} - {})", "({} * {})"];
        let mixed = forms.map(|form| filled(form, vec![self.int.clone(), self.double.clone()]));
        let swapped = forms.map(|form| filled(form, vec![self.double.clone(), self.int.clone()]));
        let double = any_of([self.double].into_iter().chain(mixed).chain(swapped).collect());
        Self { double, ..self }
    }

    /// Returns sources of any type.
    fn any(self) -> BoxedStrategy<String> {
        let Self { int, double, bool, text, ints, texts } = self;
        let pair = filled("{'a': {}, 'b': [{}, {}]}", vec![int.clone(), bool.clone(), text.clone()]);
        any_of(vec![int, double, bool.clone(), bool, text, ints, texts, pair])
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn generated_expressions_have_the_value_that_cel_gives_them(source in leaves().deeper().deeper().deeper().any()) {
        check(&source, false)?;
    }

    #[test]
    fn mixed_numbers_change_no_value_that_cel_gives(source in leaves().mixed().deeper().mixed().deeper().any()) {
        check(&source, true)?;
    }
}

#[test]
fn examples_of_every_rule_have_the_value_that_cel_gives_them() {
    for source in [
        "1 + 2 * 3 - 4 / 2 % 3",
        "1 + 2 == 3 && !false || 1 / 0 == 0",
        "true ? (false ? 1 : 2) : 3",
        "false ? 1 : true ? 2 : 3",
        "-9223372036854775808 / -1",
        "{'a': [1, {'b': null}]}.a[1].b == null",
        "1 == 1.0 && 1u == 1 && 1.0 == 1u",
        "'a' in {'a': 1} && !(1 in [])",
        "'\\u00e9\\n\\t' == \"é\\n\\t\"",
        "[1, 2, 3].filter(x, x % 2 == 1).map(x, x * x).exists_one(x, x == 9)",
        "size('é🚀') + size([1]) + size({'a': 1})",
        "has(input.m.k) && !has(input.m.x)",
        "input.x == 1 || true",
        "'a' < 'b' && false < true && 1u < 2u",
    ] {
        check(source, false).unwrap();
    }
}

#[test]
fn cel_gives_mixed_numbers_no_value_and_ours_does() {
    check("1 + 1.5", true).unwrap();
    assert!(check("1 + 1.5", false).is_err());
}
