//! The rules of [`prose`](super::prose) on Markdown: on paragraphs and items of lists, not on
//! examples, tables, headings and HTML.

use super::prose::{Fault, FaultAt, end_block, names_no_actor};

/// The most columns of a line of prose in a document.
const COLUMNS: usize = 120;

/// Returns the faults of a document's prose, in their order.
pub(crate) fn faults_of_document(text: &str) -> Vec<FaultAt> {
    let mut faults = Vec::new();
    let (mut block, mut start, mut is_code) = (Vec::new(), 0, false);
    for (line, text) in text.lines().enumerate() {
        let trimmed = text.trim_start();
        let is_fence = trimmed.starts_with("```");
        is_code ^= is_fence;
        let is_prose = !is_code && !is_fence && !trimmed.starts_with(['#', '|', '<', '[']);
        // A paragraph ends at an empty line, at what is no prose, and where an item begins.
        if !is_prose || trimmed.is_empty() || item(trimmed).is_some() {
            end_block(&mut block, start, &mut faults);
        }
        if !is_prose || trimmed.is_empty() {
            continue;
        }
        if text.chars().count() > COLUMNS {
            faults.push(FaultAt { line, fault: Fault::Wide });
        }
        if names_no_actor(text) {
            faults.push(FaultAt { line, fault: Fault::Actor });
        }
        if block.is_empty() {
            start = line;
        }
        block.push(item(trimmed).unwrap_or(trimmed));
    }
    end_block(&mut block, start, &mut faults);
    faults.sort_by_key(|at| at.line);
    faults
}

/// Returns the text of a line that begins an item of a list.
fn item(line: &str) -> Option<&str> {
    let number = line.trim_start_matches(|digit: char| digit.is_ascii_digit());
    let numbered = (number.len() < line.len()).then(|| number.strip_prefix(". ")).flatten();
    line.strip_prefix("- ").or_else(|| line.strip_prefix("* ")).or(numbered)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(text: &str) -> Vec<(usize, Fault)> {
        faults_of_document(text).into_iter().map(|found| (found.line, found.fault)).collect()
    }

    #[test]
    fn each_paragraph_and_item_opens_with_its_subject() {
        let text = "Onward runs tasks.\n\nWhat runs is kept.\n\n- Tasks wait.\n- Of them one runs.\n1. How it runs.\n";
        assert_eq!(faults(text), [(2, Fault::Opener), (5, Fault::Opener), (6, Fault::Opener)]);
    }

    #[test]
    fn headings_tables_and_examples_are_no_prose() {
        assert_eq!(faults("# How it works\n| What | nobody |\n```text\nWhat nobody reads\n```\n"), []);
    }

    #[test]
    fn a_line_is_at_most_as_wide_as_a_page() {
        assert_eq!(faults(&format!("{}\n", "word ".repeat(25))), [(0, Fault::Wide)]);
    }

    #[test]
    fn a_long_sentence_is_found_over_several_lines() {
        assert_eq!(faults(&"word word word word\n".repeat(9)), [(0, Fault::Long)]);
    }
}
