//! Shows the commands without running them.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use serde_json::json;

use super::arguments::Arguments;
use super::template::Template;
use crate::exit_code::ExitCode;
use crate::input;
use crate::options::GlobalOptions;
use crate::output::{print_json, print_raw};
use crate::process::Invocation;

/// Prints the command of every line in shell syntax. Opens no store.
pub(super) fn run(options: &GlobalOptions, arguments: &Arguments, template: &Template) -> anyhow::Result<ExitCode> {
    let input = input::open("--input", arguments.input.as_deref())?;
    let mut lines = arguments.items(input);
    while let Some(line) = lines.next()? {
        let invocation = template.fill(&line.text, &line.number.to_string(), Vec::new());
        if options.json {
            print_json(&json!({ "line": line.number, "command": words(&invocation) }))?;
        } else {
            print_raw(&[&shell_words(&invocation)[..], b"\n"].concat())?;
        }
    }
    Ok(ExitCode::Done)
}

fn words(invocation: &Invocation) -> Vec<String> {
    let words = std::iter::once(&invocation.program).chain(&invocation.arguments);
    words.map(|word| word.to_string_lossy().into_owned()).collect()
}

/// Returns a command in shell syntax, without a line feed at the end.
pub(super) fn shell_words(invocation: &Invocation) -> Vec<u8> {
    let mut text = quoted(&invocation.program);
    for argument in &invocation.arguments {
        text.push(b' ');
        text.extend(quoted(argument));
    }
    if let Some(stdin) = &invocation.stdin {
        text.extend_from_slice(b" <<< ");
        text.extend(quoted(OsStr::from_bytes(stdin)));
    }
    text
}

/// Returns a word quoted so that a shell takes it literally.
fn quoted(word: &OsStr) -> Vec<u8> {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"_@%+=:,./-".contains(byte);
    let bytes = word.as_bytes();
    if !bytes.is_empty() && bytes.iter().all(is_plain) {
        return bytes.to_vec();
    }
    let mut quoted = vec![b'\''];
    for byte in bytes {
        match byte {
            b'\'' => quoted.extend_from_slice(br"'\''"),
            other => quoted.push(*other),
        }
    }
    quoted.push(b'\'');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_a_shell_would_take_them_otherwise() {
        let quoted = |word: &str| String::from_utf8(quoted(OsStr::new(word))).unwrap();
        assert_eq!(["a/b.c", "", "a b", "it's", "$x"].map(quoted), ["a/b.c", "''", "'a b'", r"'it'\''s'", "'$x'"]);
    }
}
