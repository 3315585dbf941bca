//! The command template of a run.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use bytes::Bytes;

use crate::process::Invocation;

/// The placeholders in an argument for the line, or for a part of it.
const PLACEHOLDERS: [(&[u8], Part); 6] = [
    (b"{}", Part::Line),
    (NUMBER, Part::Number),
    (b"{.}", Part::WithoutExtension),
    (b"{/}", Part::Name),
    (b"{//}", Part::Directory),
    (b"{/.}", Part::NameWithoutExtension),
];

/// The placeholder for the number of the line.
const NUMBER: &[u8] = b"{#}";

/// A part of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// The whole line.
    Line,
    /// The number of the line.
    Number,
    /// The path without its extension.
    WithoutExtension,
    /// The part of the path after its last slash.
    Name,
    /// The part of the path before its last slash.
    Directory,
    /// The name in the path without its extension.
    NameWithoutExtension,
    /// The column with this number, counted from 1; empty if the line has fewer.
    Column(usize),
}

/// The way in which a command receives its line.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct LineInput {
    /// True to write the line to stdin. Placeholders then have no effect.
    pub(super) stdin: bool,
    /// The text between the columns of a line; `None` if a line has no columns.
    pub(super) separator: Option<Vec<u8>>,
}

/// A command with a place for the line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Template {
    program: OsString,
    arguments: Vec<OsString>,
    place: LinePosition,
    separator: Option<Vec<u8>>,
}

/// The place of the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LinePosition {
    /// In place of each placeholder.
    Placeholder,
    /// After the last argument. The columns are separate arguments.
    Last,
    /// On stdin.
    Stdin,
}

impl Template {
    /// Creates the template of a command. Returns `None` if there is no program.
    pub(super) fn new(command: &[OsString], way: LineInput) -> Option<Self> {
        let (program, arguments) = command.split_first()?;
        let LineInput { stdin, separator } = way;
        let has_columns = separator.is_some();
        let has_placeholder = arguments.iter().any(|argument| find(argument.as_bytes(), has_columns).is_some());
        let place = match (stdin, has_placeholder) {
            (true, _) => LinePosition::Stdin,
            (false, true) => LinePosition::Placeholder,
            (false, false) => LinePosition::Last,
        };
        Some(Self { program: program.clone(), arguments: arguments.to_vec(), place, separator })
    }

    /// Returns the program.
    pub(super) fn program(&self) -> &OsStr {
        &self.program
    }

    /// Returns true if an argument contains the placeholder for the number of the line.
    pub(super) fn has_number(&self) -> bool {
        let contains = |argument: &OsString| argument.as_bytes().windows(NUMBER.len()).any(|text| text == NUMBER);
        self.place == LinePosition::Placeholder && self.arguments.iter().any(contains)
    }

    /// Returns the invocation for one line. `number` is the number of the line as text.
    pub(super) fn fill(
        &self,
        line: &Bytes,
        number: &str,
        environment: Vec<(Cow<'static, str>, OsString)>,
    ) -> Invocation {
        let mut arguments = self.arguments.clone();
        let columns = self.separator.as_ref().map(|separator| columns(line, separator));
        match (self.place, columns) {
            (LinePosition::Placeholder, columns) => {
                let parts = Parts { line, number: number.as_bytes(), columns: columns.as_deref() };
                arguments.iter_mut().for_each(|argument| *argument = replaced(argument, parts));
            }
            (LinePosition::Last, None) => arguments.push(OsStr::from_bytes(line).to_owned()),
            (LinePosition::Last, Some(columns)) => {
                arguments.extend(columns.into_iter().map(|column| OsStr::from_bytes(column).to_owned()));
            }
            (LinePosition::Stdin, _) => {}
        }
        let stdin = (self.place == LinePosition::Stdin).then(|| line.clone());
        Invocation { program: self.program.clone(), arguments, environment, stdin }
    }
}

/// A line and its parts.
#[derive(Debug, Clone, Copy)]
struct Parts<'l> {
    line: &'l [u8],
    number: &'l [u8],
    columns: Option<&'l [&'l [u8]]>,
}

impl Part {
    fn of(self, parts: Parts<'_>) -> &[u8] {
        let Parts { line, number, columns } = parts;
        let slash = line.iter().rposition(|byte| *byte == b'/');
        let name = slash.map_or(line, |at| &line[at + 1..]);
        match self {
            Self::Line => line,
            Self::Number => number,
            Self::WithoutExtension => &line[..line.len() - extension(name)],
            Self::Name => name,
            Self::NameWithoutExtension => &name[..name.len() - extension(name)],
            Self::Directory => match slash {
                None => b".",
                Some(0) => b"/",
                Some(at) => &line[..at],
            },
            Self::Column(column) => {
                columns.and_then(|columns| columns.get(column.wrapping_sub(1)).copied()).unwrap_or_default()
            }
        }
    }
}

/// Returns the length of a name's extension with its dot. A name whose only dot comes first has
/// none.
fn extension(name: &[u8]) -> usize {
    match name.iter().rposition(|byte| *byte == b'.') {
        None | Some(0) => 0,
        Some(dot) => name.len() - dot,
    }
}

fn columns<'l>(line: &'l [u8], separator: &[u8]) -> Vec<&'l [u8]> {
    let (mut columns, mut rest) = (Vec::new(), line);
    while let Some(at) = rest.windows(separator.len()).position(|window| window == separator) {
        columns.push(&rest[..at]);
        rest = &rest[at + separator.len()..];
    }
    columns.push(rest);
    columns
}

/// Finds the first placeholder in an argument. Returns its position, its length and its part.
fn find(argument: &[u8], has_columns: bool) -> Option<(usize, usize, Part)> {
    let starts = argument.iter().enumerate().filter(|(_, byte)| **byte == b'{').map(|(at, _)| at);
    starts.into_iter().find_map(|at| {
        let rest = &argument[at..];
        let fixed = PLACEHOLDERS.iter().find(|(text, _)| rest.starts_with(text));
        let found = fixed.map(|(text, part)| (text.len(), *part)).or_else(|| column(rest).filter(|_| has_columns));
        found.map(|(length, part)| (at, length, part))
    })
}

/// Reads the placeholder of a column, such as `{1}`, at the beginning of a text. Returns its length
/// and the column.
fn column(text: &[u8]) -> Option<(usize, Part)> {
    let end = text.iter().position(|byte| *byte == b'}')?;
    let digits = text.get(1..end).filter(|digits| digits.iter().all(u8::is_ascii_digit))?;
    let number: usize = std::str::from_utf8(digits).ok()?.parse().ok()?;
    (number > 0).then_some((end + 1, Part::Column(number)))
}

/// Returns the argument with every placeholder replaced. Placeholders within the line itself are
/// not replaced.
fn replaced(argument: &OsStr, parts: Parts<'_>) -> OsString {
    let (mut rest, mut filled) = (argument.as_bytes(), Vec::new());
    while let Some((at, length, part)) = find(rest, parts.columns.is_some()) {
        filled.extend_from_slice(&rest[..at]);
        filled.extend_from_slice(part.of(parts));
        rest = &rest[at + length..];
    }
    filled.extend_from_slice(rest);
    OsString::from_vec(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled_by(command: &[&str], way: LineInput, line: &'static str) -> Invocation {
        let command: Vec<OsString> = command.iter().map(Into::into).collect();
        Template::new(&command, way).unwrap().fill(&line.into(), "7", vec![])
    }

    fn filled(command: &[&str], stdin: bool, line: &'static str) -> Invocation {
        filled_by(command, LineInput { stdin, separator: None }, line)
    }

    fn by_columns(command: &[&str], separator: &str, line: &'static str) -> Vec<OsString> {
        filled_by(command, LineInput { stdin: false, separator: Some(separator.into()) }, line).arguments
    }

    #[test]
    fn a_placeholder_is_replaced_wherever_it_stands() {
        assert_eq!(filled(&["cp", "{}", "to/{}.bak-{}"], false, "a b").arguments, ["a b", "to/a b.bak-a b"]);
    }

    #[test]
    fn parts_of_a_path_are_as_their_placeholders_say() {
        let parts = ["x", "{.}", "{/}", "{//}", "{/.}"];
        assert_eq!(filled(&parts, false, "a.d/b.tar.gz").arguments, ["a.d/b.tar", "b.tar.gz", "a.d", "b.tar"]);
        assert_eq!(filled(&parts, false, "a.d/b").arguments, ["a.d/b", "b", "a.d", "b"]);
        assert_eq!(filled(&parts, false, ".rc").arguments, [".rc", ".rc", ".", ".rc"]);
        assert_eq!(filled(&parts, false, "/b.c").arguments, ["/b", "b.c", "/", "b"]);
    }

    #[test]
    fn the_number_of_a_line_has_a_placeholder() {
        assert_eq!(filled(&["x", "{#}-{}", "{#}"], false, "a{#}").arguments, ["7-a{#}", "7"]);
    }

    #[test]
    fn other_braces_stay_as_they_are() {
        assert_eq!(filled(&["awk", "{print}", "{1}", "{"], false, "f").arguments, ["{print}", "{1}", "{", "f"]);
    }

    #[test]
    fn columns_are_numbered_and_those_that_are_missing_empty() {
        assert_eq!(by_columns(&["x", "{2}-{1}", "{3}", "{}", "{0}"], ", ", "a, b"), ["b-a", "", "a, b", "{0}"]);
        assert_eq!(by_columns(&["x", "-v"], "\t", "a b\tc"), ["-v", "a b", "c"]);
    }

    #[test]
    fn without_a_placeholder_the_line_comes_last() {
        assert_eq!(filled(&["ls", "-l"], false, "file").arguments, ["-l", "file"]);
    }

    #[test]
    fn a_placeholder_in_the_line_is_not_replaced_again() {
        assert_eq!(filled(&["echo", "<{}>"], false, "{}").arguments, ["<{}>"]);
    }

    #[test]
    fn with_stdin_the_arguments_stay_as_they_are() {
        let filled = filled(&["jq", "{}"], true, "line");
        assert_eq!((filled.arguments, filled.stdin), (vec!["{}".into()], Some("line".into())));
    }
}
