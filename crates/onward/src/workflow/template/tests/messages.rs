//! The messages of the documentation, and that their corrections are YAML.

use std::sync::Arc;

use super::super::errors::Errors;
use super::super::source::Source;
use super::super::{RunError, TemplateError, TemplateFile, yaml};
use super::fields::bad_files;
use super::reading::{errors_of, read};

/// A file with the faults that the documentation shows.
const SHOP: &str = r#"name: shop
steps:
  charge:
    task: card.charge
    with: {amount: "${{ input.amount }}"}
  remind:
    task: send-reminder
    depends_on: [charge]
    if: !input.paid
  ship:
    task: parcels.ship
    with:
      order: ${{ input.order }}
    depend_on: [charge]
  join:
    task: join-tables
    depends_on: [charge]
    publishes:
      - name: joined
        when: completed
        if: ${{ input.a }} && input.b
  mail:
    task: send-mail
    with: {to: "${{ steps.join.result }}"}
  stock:
    run: ./stock.sh ${{ input.day }}
"#;

#[test]
fn all_faults_of_a_file_are_shown_together() {
    insta::assert_snapshot!(errors_of("shop.yaml", SHOP), @r#"
    shop.yaml:9:9: `!input.paid` is a YAML tag, not an expression; put it in quotes: if: '!input.paid'
    9 |     if: !input.paid
      |         ^^^^^^^^^^^
    shop.yaml:14:5: unknown field `depend_on` in step `ship`; did you mean `depends_on`?
    14 |     depend_on: [charge]
       |     ^^^^^^^^^
    shop.yaml:21:28: expected an end after `${{ input.a }}`; write the whole condition without `${{ }}`: if: input.a && input.b
    21 |         if: ${{ input.a }} && input.b
       |                            ^^^^^^^^^^
    shop.yaml:24:21: step `mail` uses steps.join, which it does not depend on; add `depends_on: [join]`
    24 |     with: {to: "${{ steps.join.result }}"}
       |                     ^^^^^^^^^^^^^^^^^
    shop.yaml:26:21: a script cannot hold `${{ }}`; pass the value by env: {DAY: "${{ input.day }}"} and use "$DAY"
    26 |     run: ./stock.sh ${{ input.day }}
       |                     ^^^^^^^^^^^^^^^^
    "#);
}

#[test]
fn a_fault_of_a_run_names_its_place_in_the_file() {
    let text = "name: shop\nsteps:\n  mail:\n    task: send-mail\n    with:\n      to: ${{ input.adress }}\n";
    let file = TemplateFile::read("shop.yaml", text).unwrap();
    let error = RunError {
        run: 12,
        step: "mail".into(),
        message: "no field `adress` in input; there are `address`, `amount`".into(),
        place: "with.to".into(),
        source: file.place(None, &["steps", "mail", "with", "to"]),
    };
    insta::assert_snapshot!(error, @"run 12, step `mail`: no field `adress` in input; there are `address`, `amount`. In with.to, shop.yaml:6:11");
    let elsewhere = RunError { source: None::<(Arc<str>, _)>, ..error };
    insta::assert_snapshot!(elsewhere, @"run 12, step `mail`: no field `adress` in input; there are `address`, `amount`. In with.to");
}

/// Returns true if a text is YAML, alone or as the value of a key.
fn is_yaml(text: &str) -> bool {
    let source = Source::new("correction.yaml", text);
    let mut errors = Errors::new(&source);
    yaml::load(&mut errors).is_some() && errors.is_empty()
}

#[test]
fn every_correction_is_yaml_as_printed() {
    let files = [SHOP].into_iter().map(str::to_owned).chain(bad_files());
    let all: Vec<TemplateError> = files.flat_map(|text| errors_of("shop.yaml", &text).as_slice().to_vec()).collect();
    let corrections: Vec<_> = all.iter().filter_map(|error| Some((error, error.correction.as_deref()?))).collect();
    assert!(corrections.len() > 15, "{}", corrections.len());
    for (error, correction) in corrections {
        assert!(error.message.contains(correction), "{error}");
        assert!(is_yaml(correction), "{error}");
    }
}

#[test]
fn corrections_of_the_documentation_mend_the_file() {
    let mended = SHOP
        .replace("if: !input.paid", "if: '!input.paid'")
        .replace("depend_on:", "depends_on:")
        .replace("if: ${{ input.a }} && input.b", "if: input.a && input.b")
        .replace("    task: send-mail", "    depends_on: [join]\n    task: send-mail")
        .replace("./stock.sh ${{ input.day }}", "./stock.sh \"$DAY\"\n    env: {DAY: \"${{ input.day }}\"}");
    read(&mended);
}
