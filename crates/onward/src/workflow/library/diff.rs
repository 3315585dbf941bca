//! The difference of two templates.

use std::time::Duration;

use similar::TextDiff;

/// The time limit for a minimal diff. After it the diff is correct but may be larger, so that two
/// large templates without a common line do not take minutes.
const PATIENCE: Duration = Duration::from_millis(500);

/// The number of unchanged lines around a change.
const CONTEXT: usize = 3;

/// Returns the difference of two named texts in the unified format; empty if they are equal.
pub(super) fn unified((name, text): (&str, &str), (other_name, other): (&str, &str)) -> String {
    let diff = TextDiff::configure().timeout(PATIENCE).diff_lines(text, other);
    diff.unified_diff().context_radius(CONTEXT).header(name, other_name).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_line_stands_between_its_neighbours() {
        let diff = unified(("n@1", "a\nb\nc\n"), ("n@2", "a\nB\nc\n"));
        assert_eq!(diff, "--- n@1\n+++ n@2\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n");
    }

    #[test]
    fn equal_texts_have_an_empty_difference() {
        assert_eq!(unified(("n@1", "a\n"), ("n@2", "a\n")), "");
    }
}
