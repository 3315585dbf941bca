//! The rules of names.

use onward_store::text::Shown;
use onward_store::{Name, Tags};

use super::errors::shown;

/// The prefix of the kinds of runs.
const KIND_PREFIX: &str = "run:";

/// The pattern of a template's name, for the JSON Schema.
pub(super) const TEMPLATE_PATTERN: &str = "^[a-z0-9_-]+(/[a-z0-9_-]+)?$";

/// The pattern of a step's name, for the JSON Schema.
pub(super) const STEP_PATTERN: &str = "^[a-z][a-z0-9_]*$";

/// The pattern of `NAME` or `NAME@VERSION`, for the JSON Schema.
pub(super) const REFERENCE_PATTERN: &str = "^[a-z0-9_-]+(/[a-z0-9_-]+)?(@.+)?$";

/// Checks the name of a template.
///
/// # Errors
/// If it has other characters than small letters, digits, `_`, `-` and one `/`, or is too long.
pub(super) fn template(name: &str) -> Result<(), String> {
    let is_part = |part: &str| !part.is_empty() && part.bytes().all(is_template_byte);
    if !name.split('/').all(is_part) || name.matches('/').count() > 1 {
        let name = shown(name);
        return Err(format!(
            "`{name}` is no name of a template; it has small letters, digits, `_`, `-` and at most one `/`"
        ));
    }
    Name::new(format!("{KIND_PREFIX}{name}")).map(drop).map_err(|error| error.to_string())
}

/// Returns a valid name of a template that resembles a text.
pub(super) fn like_template(text: &str) -> String {
    let letters = text.chars().map(|letter| letter.to_ascii_lowercase());
    let like: String = letters.map(|letter| if is_template_char(letter) { letter } else { '-' }).take(64).collect();
    match like.trim_matches('-') {
        "" => "workflow".into(),
        name => name.into(),
    }
}

fn is_template_char(letter: char) -> bool {
    u8::try_from(letter).is_ok_and(is_template_byte)
}

fn is_template_byte(byte: u8) -> bool {
    matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-')
}

/// Checks the name of a step, which expressions write as `steps.NAME`.
///
/// # Errors
/// If it does not begin with a small letter, has other characters than small letters, digits and
/// `_`, or is longer than a name may be.
pub(super) fn step(name: &str) -> Result<(), String> {
    let is_letter = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_');
    if !name.starts_with(|first: char| first.is_ascii_lowercase()) || !name.bytes().all(is_letter) {
        let name = shown(name);
        return Err(format!(
            "`{name}` is no name of a step; it begins with a small letter, and has small letters, digits and `_`"
        ));
    }
    Name::new(name).map(drop).map_err(|error| error.to_string())
}

/// Returns a valid name of a step that resembles a text.
pub(super) fn like_step(text: &str) -> String {
    let letters = text.chars().map(|letter| letter.to_ascii_lowercase());
    let like: String =
        letters.map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' }).take(64).collect();
    match like.trim_start_matches(|letter: char| !letter.is_ascii_lowercase()) {
        "" => "step".into(),
        name => name.into(),
    }
}

/// Checks the name of a kind, a queue, a signal or an event.
///
/// # Errors
/// If the store would refuse it.
pub(super) fn name(text: &str) -> Result<(), String> {
    if text.contains("${{") {
        return Err(format!("`{}` is a name, which cannot hold `${{{{ }}}}`", shown(text)));
    }
    let is_own = Name::new(text).and_then(|name| name.check_own("name"));
    is_own.map_err(|error| error.to_string())
}

/// Checks the name of an environment variable.
///
/// # Errors
/// If a shell could not read it.
pub(super) fn variable(name: &str) -> Result<(), String> {
    let is_letter = |byte: u8| byte == b'_' || byte.is_ascii_alphanumeric();
    if name.is_empty() || name.starts_with(|first: char| first.is_ascii_digit()) || !name.bytes().all(is_letter) {
        let name = shown(name);
        return Err(format!("`{name}` is no name of an environment variable; it has letters, digits and `_`"));
    }
    Ok(())
}

/// Checks the key of a tag.
///
/// # Errors
/// If the store would refuse it.
pub(super) fn tag(key: &str) -> Result<(), String> {
    let tags: Tags = [(key, "")].into_iter().collect();
    tags.check().map_err(|error| error.to_string())
}

/// Splits `NAME` or `NAME@VERSION`.
///
/// # Errors
/// If the name is none of a template, or the version is empty.
pub(super) fn reference(text: &str) -> Result<(&str, Option<&str>), String> {
    let (name, version) = text.split_once('@').map_or((text, None), |(name, version)| (name, Some(version)));
    template(name)?;
    match version {
        Some("") => Err(format!("`{}` has no version behind its `@`; leave `@` out for the newest", Shown(text))),
        version => Ok((name, version)),
    }
}

/// Checks the name of an environment.
///
/// # Errors
/// If it has other characters than small letters, digits, `_` and `-`.
pub(super) fn environment(name: &str) -> Result<(), String> {
    if name.is_empty() || !name.bytes().all(is_template_byte) {
        return Err(format!(
            "`{}` is no name of an environment; it has small letters, digits, `_` and `-`",
            shown(name)
        ));
    }
    Name::new(name).map(drop).map_err(|error| error.to_string())
}

/// Returns a valid name of an environment variable that resembles a text.
pub(super) fn like_variable(text: &str) -> String {
    let letters = text.chars().map(|letter| letter.to_ascii_uppercase());
    let like: String =
        letters.map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' }).take(64).collect();
    match like.trim_start_matches(|letter: char| !letter.is_ascii_uppercase()).trim_end_matches('_') {
        "" => "VALUE".into(),
        name => name.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_templates_have_at_most_one_namespace() {
        for name in ["shop", "shop/order", "1-commands", "a_b/c-d"] {
            assert!(template(name).is_ok(), "{name}");
        }
        for name in ["", "Shop", "a/b/c", "/a", "a/", "a b", "a.b", "ö"] {
            assert!(template(name).is_err(), "{name}");
        }
        assert!(template(&"a".repeat(125)).is_err());
    }

    #[test]
    fn names_of_steps_are_words_of_expressions() {
        for name in ["a", "step_1", "load_orders"] {
            assert!(step(name).is_ok(), "{name}");
        }
        for name in ["", "A", "1a", "_a", "a-b", "a.b", "é"] {
            assert!(step(name).is_err(), "{name}");
        }
    }

    #[test]
    fn suggested_names_are_allowed() {
        for text in ["Shop", "My Order.v2", "", "---", "ÄÖ", "1"] {
            assert!(template(&like_template(text)).is_ok(), "{text}");
            assert!(step(&like_step(text)).is_ok(), "{text}");
        }
    }

    #[test]
    fn a_reference_has_a_name_and_perhaps_a_version() {
        assert_eq!(reference("ops/build@4"), Ok(("ops/build", Some("4"))));
        assert_eq!(reference("build"), Ok(("build", None)));
        assert!(reference("build@").is_err());
        assert!(reference("Build@4").is_err());
    }
}
