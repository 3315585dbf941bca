//! Files that are made to cost time, memory or stack.

use proptest::prelude::*;

use super::super::bounds::{
    ERRORS_REPORTED, STEPS, TEMPLATE_BYTES, YAML_DEPTH, YAML_NODES, YAML_REPLAYED, YAML_REPLAYED_BYTES,
};
use super::super::errors::Errors;
use super::super::source::Source;
use super::super::yaml::{self, Node};
use super::super::{TemplateErrors, TemplateFile};
use super::examples::EXAMPLES;
use super::reading::{error_of, errors_of};

/// Reads a file and checks that its errors are bounded.
fn attempt(text: &str) -> Result<(), TemplateErrors> {
    let errors = TemplateFile::read("test.yaml", text).map(drop);
    if let Err(errors) = &errors {
        assert!((1..=ERRORS_REPORTED).contains(&errors.as_slice().len()));
        let lines = text.split(['\n', '\r']).count();
        assert!(
            errors.as_slice().iter().all(|error| (1..=lines).contains(&(error.position.line as usize))),
            "{errors}"
        );
    }
    errors
}

/// Returns the number of keys and values of a file, with what its aliases repeat.
fn size(text: &str) -> usize {
    fn of(node: &Node) -> usize {
        let items: usize = node.items().iter().map(of).sum();
        let entries: usize = node.entries().iter().map(|entry| 1 + of(&entry.value)).sum();
        1 + items + entries
    }
    let source = Source::new("test.yaml", text);
    yaml::load(&mut Errors::new(&source)).as_ref().map_or(0, of)
}

#[test]
fn every_truncation_of_each_example_is_read_or_refused() {
    for (name, text) in EXAMPLES {
        for (end, _) in text.char_indices() {
            let _ = attempt(&text[..end]);
        }
        assert!(attempt(text).is_ok(), "{name}");
    }
}

#[test]
fn every_example_with_one_character_too_many_is_read_or_refused() {
    for (_, text) in EXAMPLES {
        for (step, (at, _)) in text.char_indices().enumerate() {
            let extra = ['{', '}', '[', ']', '"', '\'', ':', '-', '&', '*', '!', '|', '>', '%', '\t', '\u{feff}'];
            let _ = attempt(&format!("{}{}{}", &text[..at], extra[step % extra.len()], &text[at..]));
        }
    }
}

#[test]
fn a_file_of_one_repeated_character_is_refused() {
    let repeated = [
        "[", "{", "]", "}", "- ", "-\n", "? ", "?\n", ":", ": ", "a: ", "{a: ", "[a: ", "!", "! ", "&a ", "*a ", "\"",
        "'", "|\n", "> ", "%a\n", "---\n", "...\n", "#", "\n", "\t", "\r", "\u{feff}", "\0", "[[],", "a", "a\n",
        "a b\n", "<<: ",
    ];
    for part in repeated {
        let text = part.repeat(TEMPLATE_BYTES / part.len());
        assert!(attempt(&text).is_err(), "{part:?}");
    }
}

#[test]
fn a_list_of_short_values_is_refused_by_their_number() {
    for (open, part, close) in [("[", "a,", "]"), ("{a: {", "a: b,", "}}"), ("- [", "a: b,", "]"), ("", "- a\n", "")] {
        let text = format!("{open}{}{close}", part.repeat((TEMPLATE_BYTES - 10) / part.len()));
        let errors = attempt(&text).unwrap_err().to_string();
        assert!(errors.contains(&format!("at most {YAML_NODES} keys and values")), "{open}{part}: {errors}");
    }
}

#[test]
fn a_file_that_is_too_large_is_not_parsed() {
    let error = error_of(&"- a\n".repeat(TEMPLATE_BYTES / 4 + 1));
    assert!(error.message.contains(&format!("at most {TEMPLATE_BYTES}")), "{error}");
}

#[test]
fn values_nest_up_to_a_bound() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let with = |depth| format!("steps: {{a: {{task: t, with: {}}}}}", nested(depth));
    assert!(attempt(&with(YAML_DEPTH - 3)).is_ok());
    let error = attempt(&with(YAML_DEPTH - 2)).unwrap_err().to_string();
    assert!(error.contains("nest at most 64 levels deep"), "{error}");
}

#[test]
fn an_alias_does_not_nest_deeper_than_what_it_repeats() {
    let nested = format!("{}{}", "[".repeat(40), "]".repeat(40));
    let text = format!("steps: {{a: {{task: t, with: [&a {nested}, {}*a{}]}}}}", "[".repeat(30), "]".repeat(30));
    assert!(attempt(&text).unwrap_err().to_string().contains("nest at most 64 levels deep"));
}

#[test]
fn aliases_repeat_up_to_a_bound() {
    let items = vec!["x"; YAML_REPLAYED / 10 - 1].join(", ");
    let with =
        |aliases: usize| format!("steps: {{a: {{task: t, with: [&a [{items}], {}]}}}}", vec!["*a"; aliases].join(", "));
    assert!(attempt(&with(10)).is_ok());
    assert!(size(&with(10)) <= YAML_NODES + YAML_REPLAYED);
    let error = attempt(&with(11)).unwrap_err().to_string();
    assert!(error.contains("the aliases of a template repeat at most 10000 keys and values"), "{error}");
}

#[test]
fn an_alias_bomb_is_refused_before_it_grows() {
    let level =
        |number: usize| format!("l{number}: &l{number} [{}]\n", vec![format!("*l{}", number - 1); 9].join(", "));
    let bomb: String = std::iter::once("l0: &l0 [x]\n".to_owned()).chain((1..20).map(level)).collect();
    assert!(attempt(&bomb).unwrap_err().to_string().contains("the aliases of a template repeat"));
    let merge = |number: usize| format!("m{number}: &m{number} {{k{number}: *m{0}, <<: *m{0}}}\n", number - 1);
    let bomb: String = std::iter::once("m0: &m0 {a: x}\n".to_owned()).chain((1..40).map(merge)).collect();
    assert!(attempt(&bomb).unwrap_err().to_string().contains("the aliases of a template repeat"));
}

/// The tree shares the text, but its canonical form would have 5 GB.
#[test]
fn a_long_text_that_many_aliases_repeat_is_refused() {
    let with = |length: usize, aliases: usize| {
        let (text, aliases) = ("x".repeat(length), vec!["*a"; aliases].join(", "));
        format!("steps: {{a: {{task: t, with: [&a {text}, {aliases}]}}}}")
    };
    let canonical = |text: &str| TemplateFile::read("test.yaml", text).unwrap().canonical().len();
    assert!(canonical(&with(1024, 1024)) < 2 * TEMPLATE_BYTES);
    for (length, aliases) in [(1024, 1025), (500_000, YAML_REPLAYED), (TEMPLATE_BYTES - 1000, 2)] {
        let error = attempt(&with(length, aliases)).unwrap_err().to_string();
        assert!(error.contains(&format!("repeat at most {YAML_REPLAYED_BYTES} bytes of text")), "{error}");
    }
    let key =
        format!("steps: {{a: {{task: t, with: [{{? &k {} : 1}}, {{*k : 1}}, {{*k : 1}}]}}}}", "k".repeat(600_000));
    assert!(attempt(&key).unwrap_err().to_string().contains("bytes of text"));
}

#[test]
fn a_value_that_contains_itself_is_refused() {
    assert!(attempt("steps: &a {b: *a}").unwrap_err().to_string().contains("within the value that it repeats"));
}

#[test]
fn anchors_within_anchors_are_not_copied() {
    let nested = (0..60).map(|number| format!("&a{number} [")).collect::<String>();
    let items = vec!["x"; 50_000].join(",");
    let text = format!("steps: {{a: {{task: t, with: {nested}{items}{}}}}}", "]".repeat(60));
    assert!(attempt(&text).is_ok());
}

#[test]
fn a_cycle_of_all_steps_is_named_in_full() {
    let step = |number: usize| format!("  s{number:04}: {{task: t, depends_on: [s{:04}]}}\n", (number + 1) % STEPS);
    let text: String = (0..STEPS).map(step).collect();
    let error = error_of(&format!("steps:\n{text}"));
    assert_eq!(error.message.matches('→').count(), STEPS);
}

#[test]
fn many_cycles_are_bounded() {
    let step = |number: usize| format!("  s{number:04}: {{task: t, depends_on: [s{:04}]}}\n", number ^ 1);
    let text: String = (0..STEPS).map(step).collect();
    let errors = errors_of("test.yaml", &format!("steps:\n{text}"));
    assert_eq!((errors.as_slice().len(), errors.left_out()), (ERRORS_REPORTED, STEPS / 2 - ERRORS_REPORTED));
}

#[test]
fn steps_and_their_dependencies_have_a_bound() {
    let steps: String = (0..=STEPS).map(|number| format!("  s{number}: {{task: t}}\n")).collect();
    assert!(error_of(&format!("steps:\n{steps}")).message.contains("at most 1000 steps, and this one has 1001"));
    let listed = "- a\n".repeat(STEPS + 1);
    assert!(error_of(&listed).message.contains("at most 1000 steps"));
    let names = vec!["b"; STEPS + 1].join(", ");
    let error = error_of(&format!("steps: {{a: {{task: t, depends_on: [{names}]}}, b: {{task: t}}}}"));
    assert!(error.message.contains("`depends_on` has at most 1000 items"));
}

#[test]
fn thousands_of_errors_are_counted() {
    let unknown: String = (0..40_000).map(|number| format!("    field_{number}: 1\n")).collect();
    assert!(attempt(&format!("steps:\n  a:\n{unknown}")).is_err());
    let repeated = "    task: t\n".repeat(40_000);
    let errors = attempt(&format!("steps:\n  a:\n{repeated}")).unwrap_err();
    assert_eq!(errors.left_out(), 40_000 - 1 - ERRORS_REPORTED);
}

#[test]
fn environments_have_a_bound() {
    let environments: String = (0..33).map(|number| format!("  e{number}: {{timeout: 1s}}\n")).collect();
    let error = error_of(&format!("steps: {{a: {{task: t}}}}\nenvironments:\n{environments}"));
    assert!(error.message.contains("at most 32 environments"), "{error}");
}

#[test]
fn hidden_characters_of_a_file_reach_no_terminal() {
    let text = "steps:\n  a: {task: t, \"\\e[31mred\\u202e\": 1} # \u{202e}\u{1b}[0m\n";
    let errors = errors_of("\u{1b}[31m.yaml", text).to_string();
    assert!(errors.lines().all(|line| !line.chars().any(onward_store::text::is_hidden)), "{errors:?}");
}

#[test]
fn a_long_line_is_cut_around_its_error() {
    let text =
        format!("steps: {{a: {{task: t, with: \"{}\", tsk: 1, key: \"{}\"}}}}", "x".repeat(500), "y".repeat(500));
    let shown = error_of(&text).to_string();
    let lines: Vec<&str> = shown.lines().collect();
    assert!(lines[1].len() <= 130 && lines[1].contains(", tsk: 1,"), "{shown}");
    let column = lines[2].find("^^^").unwrap();
    assert_eq!(&lines[1][column..column + 3], "tsk");
}

/// A change of a file: what stands at a place is replaced, up to a number of characters.
fn change() -> impl Strategy<Value = (prop::sample::Index, usize, String)> {
    let part = prop_oneof![
        Just(String::new()),
        "[\\[\\]{}:,&*!|>%#'\"\\\\ \n\t-]{1,4}",
        "\\PC{0,4}",
        "(&a |\\*a|<<: |\\$\\{\\{|\\}\\}|- |\n  |\n\n|: )",
        "(depends_on|each|task|run|with|steps|input|undo|chooses): ?",
    ];
    (any::<prop::sample::Index>(), 0..40_usize, part)
}

proptest! {
    #[test]
    fn an_example_with_changes_is_read_or_refused(which in any::<prop::sample::Index>(), changes in prop::collection::vec(change(), 1..6)) {
        let mut text: Vec<char> = which.get(&EXAMPLES).1.chars().collect();
        for (at, length, part) in changes {
            let at = at.index(text.len() + 1);
            text.splice(at..(at + length).min(text.len()), part.chars());
        }
        let _ = attempt(&text.into_iter().collect::<String>());
    }
}
