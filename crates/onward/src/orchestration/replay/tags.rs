//! The tags of an orchestration, which its code may change.
//!
//! A store keeps the present tags. The history records each change with the earlier value. A replay
//! thus begins with the tags that the code began with, and a fork with those of its starting point.

use onward_store::{Tags, bounds};

use super::history::HistoryEvent;
use crate::error::{Error, Result};

/// The prefix of tag keys that the engine reserves.
const OWN: &str = "onward.";

/// Returns the tags before some events, computed from the tags after them.
pub(in crate::orchestration) fn before(mut tags: Tags, events: &[HistoryEvent]) -> Tags {
    for event in events.iter().rev() {
        if let HistoryEvent::TagSet { key, before, .. } | HistoryEvent::TagRemoved { key, before } = event {
            put(&mut tags, key, before.as_deref());
        }
    }
    tags
}

/// Sets a tag, or removes it, and returns its earlier value.
pub(super) fn put(tags: &mut Tags, key: &str, value: Option<&str>) -> Option<String> {
    let before = tags.remove(key);
    if let Some(value) = value {
        tags.set(key, value);
    }
    before
}

/// Returns an error if code may not change the tag of a key.
pub(in crate::orchestration) fn check_key(key: &str) -> Result<()> {
    if key.starts_with(OWN) {
        return Err(Error::invalid(format!(
            "the tag `{key}` is not for the code of an orchestration: keys that begin with `{OWN}` are Onward's; choose another"
        )));
    }
    Ok(())
}

/// Returns an error if an orchestration may not have these tags in addition to `own` tags of the
/// engine.
pub(super) fn check(tags: &Tags, own: usize) -> Result<()> {
    tags.check()?;
    let (many, most) = (tags.len() + own, bounds::TAGS);
    if many <= most {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "an orchestration would have {many} tags, of which {own} is Onward's, and may have {most}; remove one before"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(key: &str, value: &str, before: Option<&str>) -> HistoryEvent {
        HistoryEvent::TagSet { key: key.into(), value: value.into(), before: before.map(str::to_owned) }
    }

    #[test]
    fn what_tags_were_before_is_found_from_what_they_are() {
        let removed = HistoryEvent::TagRemoved { key: "customer".into(), before: Some("42".into()) };
        let never = HistoryEvent::TagRemoved { key: "never".into(), before: None };
        let events = [
            set("stage", "packing", Some("picking")),
            removed,
            set("stage", "sent", Some("packing")),
            never,
            set("by", "ada", None),
        ];
        let now: Tags = [("stage", "sent"), ("by", "ada"), ("region", "eu")].into_iter().collect();
        let of = |first: usize| {
            before(now.clone(), &events[first..])
                .iter()
                .map(|(key, value)| format!("{key}={value}"))
                .collect::<Vec<_>>()
        };
        assert_eq!(of(5), ["by=ada", "region=eu", "stage=sent"]);
        assert_eq!(of(2), ["region=eu", "stage=packing"]);
        assert_eq!(of(0), ["customer=42", "region=eu", "stage=picking"]);
    }
}
