//! The scripts that create the tables of a store, and the schemas that a program supports.

use crate::api::error::{Error, Result};

/// The scripts of one backend. The first one creates schema 1, and each later one the next schema.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Migrations {
    first: &'static str,
    later: &'static [&'static str],
    /// The scripts that a test adds after them.
    added: &'static [&'static str],
}

impl Migrations {
    /// Creates the list of a store: the script of schema 1, and one script for each later version.
    pub(crate) const fn new(first: &'static str, later: &'static [&'static str]) -> Self {
        Self { first, later, added: &[] }
    }

    /// Adds the scripts of a version that does not exist, for tests of upgrades.
    pub(crate) const fn and(self, added: &'static [&'static str]) -> Self {
        Self { added, ..self }
    }

    /// Returns the number of the newest schema, which the scripts make together.
    pub(crate) const fn newest(self) -> u32 {
        1 + self.later.len() as u32 + self.added.len() as u32
    }

    /// Returns the scripts that a store of this schema lacks, in their order. Schema 0 has no
    /// tables.
    pub(crate) fn after(self, schema: u32) -> impl Iterator<Item = &'static str> {
        let later = self.later.iter().chain(self.added).copied();
        std::iter::once(self.first).chain(later).skip(schema as usize)
    }

    /// Rejects a store that a newer version made. `store` names it at the beginning of the message.
    pub(crate) fn check(self, store: &str, schema: u32) -> Result<()> {
        if schema <= self.newest() {
            return Ok(());
        }
        let supported = self.supported();
        Err(Error::version(format!(
            "{store} has schema {schema} and this program supports {supported}; use the newer program that made it"
        )))
    }

    /// Returns the error for a store that a version before 0.1 made, whose schemas had numbers of
    /// their own.
    #[cold]
    pub(crate) fn development_store(self, store: &str, schema: u32) -> Error {
        let supported = self.supported();
        Error::version(format!(
            "{store} has schema {schema} of a development version of Onward from before 0.1, and this program supports \
             {supported} of released versions; finish its tasks with the version that made it and start a new store \
             under another name"
        ))
    }

    /// Returns the supported schemas as a text for messages.
    fn supported(self) -> String {
        match self.newest() {
            1 => "schema 1".to_owned(),
            newest => format!("schemas 1 to {newest}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THREE: Migrations = Migrations::new("one", &["two"]).and(&["three"]);

    #[test]
    fn a_store_without_tables_gets_every_script() {
        assert_eq!(THREE.after(0).collect::<Vec<_>>(), ["one", "two", "three"]);
    }

    #[test]
    fn an_older_store_gets_the_scripts_of_later_schemas() {
        assert_eq!(THREE.after(1).collect::<Vec<_>>(), ["two", "three"]);
        assert_eq!(THREE.after(3).count(), 0);
    }

    #[test]
    fn a_store_of_a_newer_schema_is_rejected() {
        THREE.check("the store", 3).unwrap();
        let error = THREE.check("the store", 4).unwrap_err();
        let text =
            "the store has schema 4 and this program supports schemas 1 to 3; use the newer program that made it";
        assert!(error.is_version());
        assert_eq!(error.to_string(), text);
    }

    #[test]
    fn a_development_store_is_rejected_with_its_number_and_what_to_do() {
        let error = Migrations::new("one", &[]).development_store("the store", 21);
        assert!(error.is_version());
        for part in ["schema 21 of a development version", "supports schema 1 of", "start a new store"] {
            assert!(error.to_string().contains(part), "{part}: {error}");
        }
    }
}
