//! The command template of a run.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use bytes::Bytes;

use crate::process::Invocation;

/// The pieces of a path that a placeholder may name after its opening brace and its column.
const PIECES: [(&[u8], Piece); 5] = [
    (b"}", Piece::Whole),
    (b".}", Piece::WithoutExtension),
    (b"/}", Piece::Name),
    (b"//}", Piece::Directory),
    (b"/.}", Piece::NameWithoutExtension),
];

/// The placeholder for the number of the line.
const NUMBER: &[u8] = b"{#}";

/// The text between the lines of an item where a longer argument contains all of them.
const BETWEEN_LINES: &[u8] = b" ";

/// The replacement of a placeholder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// The number of the line.
    Number,
    /// A piece of the whole line, or of every line of an item.
    Item(Piece),
    /// A piece of the column or line with this number, counted from 1; empty if there are fewer.
    Column(usize, Piece),
}

/// A piece of a text that is a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Piece {
    /// The whole text.
    Whole,
    /// The path without its extension.
    WithoutExtension,
    /// The part of the path after its last slash.
    Name,
    /// The part of the path before its last slash.
    Directory,
    /// The name in the path without its extension.
    NameWithoutExtension,
}

/// The way in which a command receives its line.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct LineInput {
    /// True to write the line to stdin. Placeholders then have no effect.
    pub(super) stdin: bool,
    /// The parts of a line.
    pub(super) split: Split,
}

/// The parts that numbered placeholders stand for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) enum Split {
    /// A line is a whole.
    #[default]
    Whole,
    /// A line has columns with this text between them.
    Columns(Vec<u8>),
    /// An item consists of several lines with this byte between them.
    Lines(u8),
}

impl Split {
    /// Returns the parts of an item; `None` if it is a whole.
    fn parts<'i>(&self, item: &'i [u8]) -> Option<Vec<&'i [u8]>> {
        match self {
            Self::Whole => None,
            Self::Columns(separator) => Some(separated(item, separator)),
            Self::Lines(delimiter) => Some(item.split(|byte| byte == delimiter).collect()),
        }
    }
}

/// A command with a place for the line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Template {
    program: OsString,
    arguments: Vec<OsString>,
    place: LinePosition,
    split: Split,
}

/// The place of the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LinePosition {
    /// In place of each placeholder.
    Placeholder,
    /// After the last argument. Columns and lines are separate arguments.
    Last,
    /// On stdin.
    Stdin,
}

impl Template {
    /// Creates the template of a command. Returns `None` if there is no program.
    pub(super) fn new(command: &[OsString], way: LineInput) -> Option<Self> {
        let (program, arguments) = command.split_first()?;
        let LineInput { stdin, split } = way;
        let has_parts = split != Split::Whole;
        let has_placeholder = arguments.iter().any(|argument| find(argument.as_bytes(), has_parts).is_some());
        let place = match (stdin, has_placeholder) {
            (true, _) => LinePosition::Stdin,
            (false, true) => LinePosition::Placeholder,
            (false, false) => LinePosition::Last,
        };
        Some(Self { program: program.clone(), arguments: arguments.to_vec(), place, split })
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
        let parts = self.split.parts(line);
        match (self.place, &parts) {
            (LinePosition::Placeholder, parts) => {
                let is_list = matches!(self.split, Split::Lines(_));
                let item = Item { line, number: number.as_bytes(), parts: parts.as_deref(), is_list };
                arguments = arguments.iter().flat_map(|argument| item.arguments(argument)).collect();
            }
            (LinePosition::Last, None) => arguments.push(OsStr::from_bytes(line).to_owned()),
            (LinePosition::Last, Some(parts)) => {
                arguments.extend(parts.iter().map(|part| OsStr::from_bytes(part).to_owned()));
            }
            (LinePosition::Stdin, _) => {}
        }
        let stdin = (self.place == LinePosition::Stdin).then(|| self.stdin(line));
        Invocation { program: self.program.clone(), arguments, environment, stdin }
    }

    /// Returns the stdin of a command. Each line of an item ends with the delimiter, so that the
    /// command reads them as lines.
    fn stdin(&self, line: &Bytes) -> Bytes {
        match self.split {
            Split::Lines(delimiter) => [&line[..], &[delimiter]].concat().into(),
            Split::Whole | Split::Columns(_) => line.clone(),
        }
    }
}

/// A line or an item of several lines, and its parts.
#[derive(Debug, Clone, Copy)]
struct Item<'l> {
    line: &'l [u8],
    number: &'l [u8],
    parts: Option<&'l [&'l [u8]]>,
    /// True if the parts are lines, which `{}` stands for one by one.
    is_list: bool,
}

impl<'l> Item<'l> {
    /// Returns the arguments that one argument of the template becomes. A placeholder for all lines
    /// that is an argument by itself becomes one argument per line.
    fn arguments(self, argument: &OsStr) -> Vec<OsString> {
        let bytes = argument.as_bytes();
        match (find(bytes, self.parts.is_some()), self.parts) {
            (Some((0, length, Part::Item(piece))), Some(parts)) if self.is_list && length == bytes.len() => {
                parts.iter().map(|part| OsStr::from_bytes(piece.of(part)).to_owned()).collect()
            }
            _ => vec![self.replaced(bytes)],
        }
    }

    /// Returns the argument with every placeholder replaced. Placeholders within the line itself
    /// are not replaced.
    fn replaced(self, argument: &[u8]) -> OsString {
        let (mut rest, mut filled) = (argument, Vec::new());
        while let Some((at, length, part)) = find(rest, self.parts.is_some()) {
            filled.extend_from_slice(&rest[..at]);
            filled.extend_from_slice(&self.text(part));
            rest = &rest[at + length..];
        }
        filled.extend_from_slice(rest);
        OsString::from_vec(filled)
    }

    fn text(self, part: Part) -> Cow<'l, [u8]> {
        let parts = self.parts.unwrap_or_default();
        match part {
            Part::Number => self.number.into(),
            Part::Item(piece) if self.is_list => {
                let pieces: Vec<&[u8]> = parts.iter().map(|part| piece.of(part)).collect();
                pieces.join(BETWEEN_LINES).into()
            }
            Part::Item(piece) => piece.of(self.line).into(),
            Part::Column(column, piece) => {
                parts.get(column.wrapping_sub(1)).map(|part| piece.of(part)).unwrap_or_default().into()
            }
        }
    }
}

impl Piece {
    fn of(self, text: &[u8]) -> &[u8] {
        let slash = text.iter().rposition(|byte| *byte == b'/');
        let name = slash.map_or(text, |at| &text[at + 1..]);
        match self {
            Self::Whole => text,
            Self::WithoutExtension => &text[..text.len() - extension(name)],
            Self::Name => name,
            Self::NameWithoutExtension => &name[..name.len() - extension(name)],
            Self::Directory => match slash {
                None => b".",
                Some(0) => b"/",
                Some(at) => &text[..at],
            },
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

fn separated<'l>(line: &'l [u8], separator: &[u8]) -> Vec<&'l [u8]> {
    let (mut columns, mut rest) = (Vec::new(), line);
    while let Some(at) = rest.windows(separator.len()).position(|window| window == separator) {
        columns.push(&rest[..at]);
        rest = &rest[at + separator.len()..];
    }
    columns.push(rest);
    columns
}

/// Finds the first placeholder in an argument. Returns its position, its length and its part.
fn find(argument: &[u8], has_parts: bool) -> Option<(usize, usize, Part)> {
    let starts = argument.iter().enumerate().filter(|(_, byte)| **byte == b'{').map(|(at, _)| at);
    starts.into_iter().find_map(|at| {
        let (length, part) = placeholder(&argument[at..], has_parts)?;
        Some((at, length, part))
    })
}

/// Reads the placeholder at the beginning of a text, such as `{}`, `{/}` or `{1.}`. Returns its
/// length and its part.
fn placeholder(text: &[u8], has_parts: bool) -> Option<(usize, Part)> {
    if text.starts_with(NUMBER) {
        return Some((NUMBER.len(), Part::Number));
    }
    let rest = text.strip_prefix(b"{")?;
    let digits = rest.iter().take_while(|byte| has_parts && byte.is_ascii_digit()).count();
    let (column, rest) = rest.split_at(digits);
    let (end, piece) = PIECES.iter().find(|(end, _)| rest.starts_with(end))?;
    let length = 1 + digits + end.len();
    if digits == 0 {
        return Some((length, Part::Item(*piece)));
    }
    let column: usize = std::str::from_utf8(column).ok()?.parse().ok()?;
    (column > 0).then_some((length, Part::Column(column, *piece)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled_by(command: &[&str], way: LineInput, line: &'static str) -> Invocation {
        let command: Vec<OsString> = command.iter().map(Into::into).collect();
        Template::new(&command, way).unwrap().fill(&line.into(), "7", vec![])
    }

    fn filled(command: &[&str], stdin: bool, line: &'static str) -> Invocation {
        filled_by(command, LineInput { stdin, split: Split::Whole }, line)
    }

    fn by_columns(command: &[&str], separator: &str, line: &'static str) -> Vec<OsString> {
        filled_by(command, LineInput { stdin: false, split: Split::Columns(separator.into()) }, line).arguments
    }

    fn by_lines(command: &[&str], item: &'static str) -> Vec<OsString> {
        filled_by(command, LineInput { stdin: false, split: Split::Lines(b'\n') }, item).arguments
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
    fn columns_have_pieces_of_paths() {
        assert_eq!(by_columns(&["x", "{2.}.{1/}", "{1//}", "{3//}"], ",", "d/a.b,c.e"), ["c.a.b", "d", ""]);
    }

    #[test]
    fn lines_of_an_item_are_numbered_and_those_that_are_missing_empty() {
        assert_eq!(by_lines(&["x", "{2}-{1/}", "{3}"], "d/a b\nc"), ["c-a b", ""]);
    }

    #[test]
    fn a_placeholder_for_all_lines_becomes_one_argument_per_line() {
        assert_eq!(by_lines(&["x", "{}", "{/.}", "<{}>"], "d/a b.c\ne"), ["d/a b.c", "e", "a b", "e", "<d/a b.c e>"]);
        assert_eq!(by_lines(&["x", "-v"], "a b\nc"), ["-v", "a b", "c"]);
    }

    #[test]
    fn lines_of_an_item_on_stdin_end_with_the_delimiter() {
        let filled = filled_by(&["wc", "-l"], LineInput { stdin: true, split: Split::Lines(b'\n') }, "a\nb");
        assert_eq!(filled.stdin, Some("a\nb\n".into()));
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
