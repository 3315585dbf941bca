//! The templates of the documentation.

use super::super::TemplateFile;

/// Each example by the name of its file.
pub(super) const EXAMPLES: [(&str, &str); 7] = [
    ("1-commands.yaml", include_str!("../../../../tests/workflows/1-commands.yaml")),
    ("2-parallel.yaml", include_str!("../../../../tests/workflows/2-parallel.yaml")),
    ("3-decision.yaml", include_str!("../../../../tests/workflows/3-decision.yaml")),
    ("4-batch.yaml", include_str!("../../../../tests/workflows/4-batch.yaml")),
    ("5-saga.yaml", include_str!("../../../../tests/workflows/5-saga.yaml")),
    ("6-environments.yaml", include_str!("../../../../tests/workflows/6-environments.yaml")),
    ("7-approval.yaml", include_str!("../../../../tests/workflows/7-approval.yaml")),
];

#[test]
fn every_example_is_read_without_errors() {
    for (name, text) in EXAMPLES {
        if let Err(errors) = TemplateFile::read(name, text) {
            panic!("{errors}");
        }
    }
}
