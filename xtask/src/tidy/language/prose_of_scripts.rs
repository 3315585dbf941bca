//! The rules of [`prose`](super::prose) on the comments of files that are not Rust, except for the
//! width of lines, which their formatters set.

use super::prose::{Fault, FaultAt, end_block, names_no_actor};
use super::script_comments::comments;

/// Returns the faults of a file's comments, in their order.
pub(crate) fn faults_of_script(path: &str, text: &str) -> Vec<FaultAt> {
    let mut faults = Vec::new();
    for lines in comments(path, text) {
        let (mut block, mut start, mut is_code) = (Vec::new(), 0, false);
        for (line, comment) in lines {
            let is_fence = comment.starts_with("```");
            is_code ^= is_fence;
            // An example, a tag such as `@param` and an empty line end a paragraph.
            let is_prose = !is_code && !is_fence && !comment.starts_with('@');
            if block.is_empty() {
                start = line;
            }
            block.push(if is_prose { comment } else { "" });
            if is_prose && names_no_actor(comment) {
                faults.push(FaultAt { line, fault: Fault::Actor });
            }
        }
        end_block(&mut block, start, &mut faults);
    }
    faults.sort_by_key(|at| at.line);
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(path: &str, text: &str) -> Vec<(usize, Fault)> {
        faults_of_script(path, text).into_iter().map(|found| (found.line, found.fault)).collect()
    }

    #[test]
    fn a_docstring_opens_with_a_verb_or_a_noun() {
        assert_eq!(faults("a.py", "def f():\n    \"\"\"Whether it ends.\"\"\"\n"), [(1, Fault::Opener)]);
        assert_eq!(faults("a.py", "def f():\n    \"\"\"Returns True if it ends.\"\"\"\n"), []);
    }

    #[test]
    fn a_comment_names_the_actor() {
        assert_eq!(faults("a.ts", "/** Waits until somebody writes. */\n"), [(0, Fault::Actor)]);
    }

    #[test]
    fn a_tag_and_an_example_are_no_prose() {
        assert_eq!(faults("a.ts", "/**\n * Returns it.\n * @param {string} a nobody\n */\n"), []);
        assert_eq!(faults("a.py", "\"\"\"Shows.\n\n```\nnobody\n```\n\"\"\"\n"), []);
    }

    #[test]
    fn a_long_sentence_is_found_over_several_lines() {
        assert_eq!(faults("a.rb", &"# word word word word\n".repeat(9)), [(0, Fault::Long)]);
    }
}
