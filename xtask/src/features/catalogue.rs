//! The content of `docs/features.toml`.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result};
use serde::Deserialize;

pub(super) const FILE: &str = "docs/features.toml";

/// The features and faults, by section.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Catalogue {
    pub(super) section: Vec<Section>,
    pub(super) feature: Vec<Feature>,
    #[serde(default)]
    pub(super) beat: Vec<Beat>,
}

/// A part of the page.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Section {
    pub(super) letter: String,
    pub(super) title: String,
}

/// A feature, named by the letter of its section and a number.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Feature {
    pub(super) id: String,
    /// One sentence, for the page.
    pub(super) text: String,
    /// More about the feature, printed only by `cargo xtask features ID`.
    pub(super) detail: Option<String>,
    /// The state of the feature. Absent: planned. False: under way. True: done, so that a test must
    /// name it.
    pub(super) claimed: Option<bool>,
    /// The part of the feature that is still planned.
    pub(super) later: Option<String>,
}

/// A fault that another system has.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Beat {
    pub(super) name: String,
    /// The letter of its section.
    pub(super) section: String,
    pub(super) text: String,
    /// The reason why no test can show that the fault is absent yet. Without it, a test must name
    /// the fault.
    pub(super) later: Option<String>,
}

impl Catalogue {
    pub(super) fn parse(text: &str) -> Result<Self> {
        toml::from_str(text).with_context(|| format!("{FILE} cannot be read"))
    }

    /// Returns the names that a test may use.
    pub(super) fn names(&self) -> BTreeSet<String> {
        let features = self.feature.iter().map(|feature| feature.id.clone());
        features.chain(self.beat.iter().map(|beat| beat.name.clone())).collect()
    }

    /// Returns the faults whose absence a test must show.
    pub(super) fn beaten(&self) -> BTreeSet<String> {
        self.beat.iter().filter(|beat| beat.later.is_none()).map(|beat| beat.name.clone()).collect()
    }
}

impl Feature {
    pub(super) fn state(&self) -> &'static str {
        match self.claimed {
            Some(true) => "done",
            Some(false) => "under way",
            None => "planned",
        }
    }
}

impl Beat {
    pub(super) fn state(&self) -> &'static str {
        if self.later.is_some() { "planned" } else { "absent" }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::Catalogue;

    /// Returns a catalogue with the features T8 and Q1; `claimed` is added to T8.
    pub(in crate::features) fn catalogue(claimed: &str) -> Catalogue {
        let text = format!(
            "[[section]]\nletter = \"T\"\ntitle = \"Tasks\"\n[[feature]]\nid = \"Q1\"\ntext = \"Queues\"\n\
             [[feature]]\nid = \"T8\"\ntext = \"Dead letters\"\n{claimed}\n"
        );
        Catalogue::parse(&text).unwrap()
    }

    /// Returns such a catalogue with a fault of other systems.
    pub(in crate::features) fn with_beat(later: &str) -> Catalogue {
        catalogue(&format!(
            "claimed = true\n[[beat]]\nname = \"lost-letters\"\nsection = \"T\"\ntext = \"letters are lost\"\n{later}"
        ))
    }
}
