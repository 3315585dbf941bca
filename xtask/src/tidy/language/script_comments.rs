//! The comments of files that are not Rust: the SDKs, the web page, the schemas and the settings.

use std::path::Path;

use crate::project::Project;

/// A line of a comment, without its marks, and its number, counted from 0.
pub(crate) type CommentLine<'t> = (usize, &'t str);

/// The marks by which a language begins its comments.
struct Marks {
    extensions: &'static [&'static str],
    /// The beginning of a comment up to the end of the line.
    line: &'static str,
    /// The beginning and the end of a comment of several lines.
    block: Option<(&'static str, &'static str)>,
}

/// The part of a file that a line is in.
enum Within {
    Code,
    /// A comment of several lines.
    Block,
    /// A literal text of several lines.
    Text,
}

const LANGUAGES: &[Marks] = &[
    Marks { extensions: &["ts", "js", "mjs", "go", "java"], line: "//", block: Some(("/*", "*/")) },
    Marks { extensions: &["py"], line: "#", block: Some(("\"\"\"", "\"\"\"")) },
    Marks { extensions: &["rb", "rbs", "sh", "toml", "yaml", "yml"], line: "#", block: None },
    Marks { extensions: &["sql"], line: "--", block: None },
];

/// The folder of libraries of other projects, whose comments are theirs.
const VENDOR: &str = "/vendor/";

/// Returns the files whose comments are read.
pub(crate) fn files(project: &Project) -> impl Iterator<Item = &str> {
    let files = project.files().iter().map(String::as_str);
    files.filter(|file| marks(file).is_some() && !file.contains(VENDOR))
}

fn marks(path: &str) -> Option<&'static Marks> {
    let extension = Path::new(path).extension()?.to_str()?;
    LANGUAGES.iter().find(|marks| marks.extensions.contains(&extension))
}

/// Returns the comments of a file that stand on lines of their own: each block with its lines.
pub(crate) fn comments<'t>(path: &str, text: &'t str) -> Vec<Vec<CommentLine<'t>>> {
    let Some(marks) = marks(path) else { return Vec::new() };
    let (mut blocks, mut within) = (vec![Vec::new()], Within::Code);
    for (number, line) in text.lines().enumerate() {
        match marks.comment(line.trim(), &mut within) {
            Some(comment) => blocks.last_mut().into_iter().for_each(|block| block.push((number, comment))),
            None => blocks.push(Vec::new()),
        }
    }
    blocks.retain(|block| !block.is_empty());
    blocks
}

impl Marks {
    /// Returns the text of a line that is only a comment. `within` is the part that the line is in.
    fn comment<'t>(&self, line: &'t str, within: &mut Within) -> Option<&'t str> {
        if let Some((begin, end)) = self.block {
            let rest = match within {
                Within::Block => Some(line),
                Within::Text => None,
                Within::Code => line.strip_prefix(begin),
            };
            if let Some(rest) = rest {
                let (rest, is_closed) = rest.split_once(end).map_or((rest, false), |(rest, _)| (rest, true));
                *within = if is_closed { Within::Code } else { Within::Block };
                return Some(rest.trim_start_matches('*').trim());
            }
            // Python writes long texts and docstrings with the same marks.
            if begin == end && line.matches(begin).count() % 2 == 1 {
                *within = if matches!(within, Within::Text) { Within::Code } else { Within::Text };
                return None;
            }
        }
        if matches!(within, Within::Text) {
            return None;
        }
        let is_program = line.starts_with("#!");
        let rest = line.strip_prefix(self.line).filter(|_| !is_program)?;
        Some(rest.trim_start_matches(['/', '#', '-']).trim())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(path: &str, text: &str) -> Vec<Vec<String>> {
        let text_of = |block: Vec<CommentLine<'_>>| block.into_iter().map(|(_, line)| line.to_owned()).collect();
        comments(path, text).into_iter().map(text_of).collect()
    }

    #[test]
    fn comments_and_docstrings_of_python_are_blocks() {
        let text = "#!/usr/bin/env python3\n# One\n# two.\nx = 1  # beside\ndef f():\n    \"\"\"Returns.\n\n    More.\n    \"\"\"\n";
        assert_eq!(texts("a.py", text), [vec!["One", "two."], vec!["Returns.", "", "More.", ""]]);
    }

    #[test]
    fn a_long_text_of_python_is_no_comment() {
        let text = "code = \"\"\"\n# Not this.\n\"\"\"\n# This.\n";
        assert_eq!(texts("a.py", text), [["This."]]);
    }

    #[test]
    fn comments_of_typescript_are_blocks() {
        let text = "/** One. */\nlet a = 1; // beside\n/**\n * Two.\n */\nlet b = 2;\n// Three.\n";
        assert_eq!(texts("a.ts", text), [vec!["One."], vec!["", "Two.", ""], vec!["Three."]]);
    }

    #[test]
    fn comments_of_sql_and_settings_begin_with_their_marks() {
        assert_eq!(texts("a.sql", "-- One.\nSELECT 1;\n"), [["One."]]);
        assert_eq!(texts("a.toml", "# One.\na = 1\n"), [["One."]]);
    }

    #[test]
    fn a_line_of_a_comment_has_its_number() {
        assert_eq!(comments("a.rb", "x = 1\n# One.\n"), [[(1, "One.")]]);
    }

    #[test]
    fn a_file_of_another_language_has_no_comments() {
        assert_eq!(comments("a.txt", "# One.\n"), Vec::<Vec<CommentLine<'_>>>::new());
    }
}
