//! Escaping of stored text, so that it cannot control the terminal that shows it.
//!
//! A key, a tag or an error message can contain an escape sequence that moves the cursor, changes
//! the window title or hides the text after it. It can also contain a line feed that makes it look
//! like a second fact. Every field goes through [`cleaned`] or [`one_line`](super::one_line). The
//! printer also calls [`harmless`] on each text, so that a field that was forgotten can at most
//! change colours.

use std::borrow::Cow;
use std::fmt::Write as _;

use onward_store::text::is_hidden;

/// The beginning of the sequences that set colours. Onward itself writes these.
const STYLE: &str = "\u{1b}[";

/// Returns a text with each character that controls a terminal replaced by an escape such as
/// `\u{1b}`. Line feeds and tabs stay.
pub(crate) fn cleaned(text: &str) -> Cow<'_, str> {
    if !text.contains(acts) {
        return Cow::Borrowed(text);
    }
    text.chars().fold(String::with_capacity(text.len()), push_shown).into()
}

/// Returns a text of several fields with each character that controls a terminal replaced by an
/// escape. Sequences that set colours stay.
pub(super) fn harmless(text: &str) -> Cow<'_, str> {
    if !text.contains(acts) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(acts) {
        shown.push_str(&rest[..at]);
        rest = &rest[at..];
        let style = style_length(rest);
        shown.push_str(&rest[..style]);
        rest = &rest[style..];
        if style == 0 {
            let mut characters = rest.chars();
            shown = characters.next().into_iter().fold(shown, push_shown);
            rest = characters.as_str();
        }
    }
    shown.push_str(rest);
    shown.into()
}

/// Returns the length of the colour sequence at the beginning of a text; 0 if there is none.
fn style_length(text: &str) -> usize {
    let Some(rest) = text.strip_prefix(STYLE) else { return 0 };
    let parameters = rest.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b';').count();
    if rest.as_bytes().get(parameters) == Some(&b'm') { STYLE.len() + parameters + 1 } else { 0 }
}

/// Returns true if a character controls a terminal, reorders text or hides text. The joiners of
/// scripts and emoji do not count.
pub(super) fn acts(character: char) -> bool {
    match character {
        '\n' | '\t' => false,
        other => is_hidden(other),
    }
}

/// Appends a character or its escape.
pub(super) fn push_shown(mut text: String, character: char) -> String {
    if acts(character) {
        // Writing to a string cannot fail.
        let _ = write!(text, "\\u{{{:x}}}", u32::from(character));
    } else {
        text.push(character);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_acts_on_is_shown_as_an_escape() {
        assert_eq!(cleaned("a\u{1b}]0;t\u{7}b\u{202e}c\r"), r"a\u{1b}]0;t\u{7}b\u{202e}c\u{d}");
    }

    #[test]
    fn text_of_any_script_is_left_alone() {
        let text = "naïve\tمی\u{200c}خواهم 👩\u{200d}🚀\n";
        assert!(matches!(cleaned(text), Cow::Borrowed(same) if same == text));
    }

    #[test]
    fn of_sequences_only_those_that_set_colours_stay() {
        assert_eq!(
            harmless("\u{1b}[1;31mred\u{1b}[0m \u{1b}[2J\u{1b}[m"),
            "\u{1b}[1;31mred\u{1b}[0m \\u{1b}[2J\u{1b}[m"
        );
    }
}
