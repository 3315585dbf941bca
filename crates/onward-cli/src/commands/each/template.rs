//! What is run for a line.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use bytes::Bytes;

use crate::process::Invocation;

/// What stands for the line in an argument.
const PLACEHOLDER: &[u8] = b"{}";

/// A command with a place for the line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Template {
    program: OsString,
    arguments: Vec<OsString>,
    place: Place,
}

/// Where the line goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// In the stead of each `{}`.
    Placeholder,
    /// Behind the last argument.
    Last,
    /// On stdin.
    Stdin,
}

impl Template {
    /// The template of a command; `None` if there is no program. With `stdin`, a `{}` has no meaning.
    pub(super) fn new(command: &[OsString], stdin: bool) -> Option<Self> {
        let (program, arguments) = command.split_first()?;
        let has_placeholder = arguments.iter().any(|argument| find(argument.as_bytes()).is_some());
        let place = match (stdin, has_placeholder) {
            (true, _) => Place::Stdin,
            (false, true) => Place::Placeholder,
            (false, false) => Place::Last,
        };
        Some(Self { program: program.clone(), arguments: arguments.to_vec(), place })
    }

    /// The program.
    pub(super) fn program(&self) -> &OsStr {
        &self.program
    }

    /// What is run for one line.
    pub(super) fn fill(&self, line: &Bytes, environment: Vec<(&'static str, OsString)>) -> Invocation {
        let mut arguments = self.arguments.clone();
        match self.place {
            Place::Placeholder => arguments.iter_mut().for_each(|argument| *argument = replaced(argument, line)),
            Place::Last => arguments.push(OsStr::from_bytes(line).to_owned()),
            Place::Stdin => {}
        }
        let stdin = (self.place == Place::Stdin).then(|| line.clone());
        Invocation { program: self.program.clone(), arguments, environment, stdin }
    }
}

fn find(argument: &[u8]) -> Option<usize> {
    argument.windows(PLACEHOLDER.len()).position(|window| window == PLACEHOLDER)
}

/// The argument with every placeholder replaced; a `{}` within the line itself is left as it is.
fn replaced(argument: &OsStr, line: &[u8]) -> OsString {
    let (mut rest, mut filled) = (argument.as_bytes(), Vec::new());
    while let Some(at) = find(rest) {
        filled.extend_from_slice(&rest[..at]);
        filled.extend_from_slice(line);
        rest = &rest[at + PLACEHOLDER.len()..];
    }
    filled.extend_from_slice(rest);
    OsString::from_vec(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(command: &[&str], stdin: bool, line: &'static str) -> Invocation {
        let command: Vec<OsString> = command.iter().map(Into::into).collect();
        Template::new(&command, stdin).unwrap().fill(&line.into(), vec![])
    }

    #[test]
    fn a_placeholder_is_replaced_wherever_it_stands() {
        assert_eq!(filled(&["cp", "{}", "to/{}.bak-{}"], false, "a b").arguments, ["a b", "to/a b.bak-a b"]);
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
