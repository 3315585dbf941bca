//! Tags: `customer=42`.

use onward_store::Tags;

use crate::exit_code::wrong_usage;

/// A tag as it is written: its key, and after the first `=` its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tag {
    key: String,
    value: String,
}

impl std::str::FromStr for Tag {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((key, value)) if !key.is_empty() => Ok(Self { key: key.to_owned(), value: value.to_owned() }),
            _ => Err(format!("`{text}` is not a tag; write it as KEY=VALUE, such as customer=42")),
        }
    }
}

/// Collects the tags that were typed.
///
/// # Errors
/// Returns a usage error if a key has two values.
pub(crate) fn tags_of(written: &[Tag]) -> anyhow::Result<Tags> {
    let mut tags = Tags::new();
    for Tag { key, value } in written {
        if tags.get(key).is_some_and(|other| other != value) {
            return Err(wrong_usage(format!("--tag {key}=… is given two values; a task has one value of each key")));
        }
        tags.set(key, value);
    }
    Ok(tags)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_read_up_to_its_first_equals_sign() {
        let tags = ["query=a=b", "none="].map(|text| text.parse::<Tag>().unwrap());
        let tags = tags_of(&tags).unwrap();
        assert_eq!(tags.iter().collect::<Vec<_>>(), [("none", ""), ("query", "a=b")]);
    }

    #[test]
    fn what_is_no_tag_is_refused() {
        for text in ["", "customer", "=42"] {
            assert!(text.parse::<Tag>().unwrap_err().contains("customer=42"), "{text}");
        }
    }

    #[test]
    fn two_values_of_one_key_are_refused() {
        let tags = ["a=1", "a=2"].map(|text| text.parse::<Tag>().unwrap());
        assert!(tags_of(&tags).is_err());
    }
}
