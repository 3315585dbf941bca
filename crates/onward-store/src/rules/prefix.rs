//! The range of texts that have a prefix, in byte order.

/// Returns the first text, in byte order, after all texts with the prefix; `None` if there is none.
#[must_use]
pub fn end(prefix: &str) -> Option<String> {
    let mut text = prefix.to_owned();
    // Nothing follows the greatest character, so the character before it is advanced instead.
    while let Some(last) = text.pop() {
        if let Some(next) = following(last) {
            text.push(next);
            return Some(text);
        }
    }
    None
}

/// Returns the next character. The order of characters is that of their bytes in UTF-8.
fn following(character: char) -> Option<char> {
    match character {
        char::MAX => None,
        // The surrogates lie between these two, and they are not characters.
        '\u{d7ff}' => Some('\u{e000}'),
        other => char::from_u32(u32::from(other) + 1),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn behind_the_last_character_there_is_nothing() {
        assert_eq!(end(""), None);
        assert_eq!(end("\u{10ffff}\u{10ffff}"), None);
        assert_eq!(end("a\u{10ffff}"), Some("b".to_owned()));
        assert_eq!(end("\u{d7ff}"), Some("\u{e000}".to_owned()));
    }

    proptest! {
        #[test]
        fn a_text_is_in_the_range_if_it_begins_with_the_prefix(
            prefix in "[ab\u{7f}\u{80}\u{d7ff}\u{e000}\u{10ffff}]{0,3}", text in "[ab\u{7f}\u{80}\u{d7ff}\u{e000}\u{10ffff}]{0,4}",
        ) {
            let within = text >= prefix && end(&prefix).is_none_or(|end| text < end);
            prop_assert_eq!(within, text.starts_with(&prefix));
        }
    }
}
