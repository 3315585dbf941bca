//! The characters that names exclude, and the display of users' texts.
//!
//! A name is compared, typed and displayed, so it consists of visible characters. A text that a
//! user takes from elsewhere (a key, an error) may contain any character; it is escaped when it is
//! displayed.

use std::fmt::{self, Write as _};

/// The first character after the alphabets that need neither joiners nor variation selectors.
const FIRST_JOINED: char = '\u{600}';

/// Returns whether a character controls its display, or is invisible: controls, characters that
/// change the direction of text, and characters without a shape.
///
/// Joiners and variation selectors are not among them, because scripts and emoji need them. A
/// [name] may contain them only where they change a shape.
///
/// [name]: crate::Name
#[must_use]
pub fn is_hidden(character: char) -> bool {
    match character {
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}' => true,
        '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180e}' => true,
        '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' => true,
        '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' => true,
        '\u{e0000}'..='\u{e00ff}' | '\u{e01f0}'..='\u{e0fff}' => true,
        other => other.is_control(),
    }
}

/// Returns whether a character changes the shape of its neighbours and has none itself.
fn is_joiner(character: char) -> bool {
    matches!(character, '\u{200c}' | '\u{200d}' | '\u{180b}'..='\u{180d}' | '\u{180f}')
        || matches!(character, '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}')
}

/// Returns the first character that a name excludes, and its position, counted in characters from
/// 1.
pub(crate) fn first_hidden(text: &str) -> Option<(usize, char)> {
    // ASCII without controls has no hidden character, and is quick to recognize.
    if text.is_ascii() && !text.bytes().any(|byte| byte.is_ascii_control()) {
        return None;
    }
    let before = std::iter::once(None).chain(text.chars().map(Some));
    let wrong = |before: Option<char>, character| {
        is_hidden(character) || is_joiner(character) && before.is_none_or(|before| before < FIRST_JOINED)
    };
    let found = before.zip(text.chars()).position(|(before, character)| wrong(before, character))?;
    Some((found + 1, text.chars().nth(found)?))
}

/// Returns a message about the first invisible character of a name, with its code and its position.
/// Returns `None` if the name has none.
#[must_use]
pub fn hidden_in(text: &str) -> Option<String> {
    let (place, character) = first_hidden(text)?;
    let (shown, code) = (Shown(text), u32::from(character));
    Some(format!("`{shown}` has the character U+{code:04X} at position {place}, which is not seen; leave it out"))
}

/// A text of a user for display: [hidden](is_hidden) characters and line feeds are escaped.
///
/// ```
/// use onward_store::text::Shown;
///
/// assert_eq!(Shown("A-17\u{202e}\n").to_string(), r"A-17\u{202e}\u{a}");
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Shown<'a>(pub &'a str);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|character| {
            if is_hidden(character) {
                return write!(f, "\\u{{{:x}}}", u32::from(character));
            }
            f.write_char(character)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_seen_is_found_with_its_place() {
        for character in
            ['\u{0}', '\n', '\u{7f}', '\u{ad}', '\u{200b}', '\u{202e}', '\u{2066}', '\u{feff}', '\u{e0041}']
        {
            assert_eq!(first_hidden(&format!("é{character}b")), Some((2, character)), "{character:?}");
        }
    }

    #[test]
    fn joiners_are_taken_where_they_change_a_shape() {
        for name in ["می\u{200c}خواهم", "👩\u{200d}🚀", "❤\u{fe0f}\u{200d}🔥", "naïve – plain", "日本語"]
        {
            assert_eq!(first_hidden(name), None, "{name}");
        }
        for name in ["or\u{200c}der", "\u{200d}a", "a\u{fe0f}", "é\u{200d}", "я\u{200c}д"] {
            assert!(first_hidden(name).is_some(), "{name:?}");
        }
    }
}
