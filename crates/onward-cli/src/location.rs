//! Where a store is, as users write it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The file of a SQLite store, given as a path or as `sqlite:PATH`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Location {
    path: PathBuf,
}

impl Location {
    /// The file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl FromStr for Location {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let path = match text.split_once(':') {
            Some(("memory", _)) => {
                return Err(
                    "a store in memory would be gone when this command ends; give a file, such as onward.db".into()
                );
            }
            Some(("sqlite", path)) => path.strip_prefix("//").unwrap_or(path),
            Some((scheme, rest)) if rest.starts_with("//") => {
                return Err(format!(
                    "this build has no store for `{scheme}:`; give a file, such as onward.db or sqlite:PATH"
                ));
            }
            _ => text,
        };
        if path.is_empty() {
            return Err("the path is empty; give a file, such as onward.db".into());
        }
        Ok(Self { path: path.into() })
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.display().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_and_a_url_name_the_same_file() {
        assert_eq!("work/onward.db".parse::<Location>(), "sqlite:work/onward.db".parse());
    }

    #[test]
    fn an_absolute_url_keeps_its_leading_slash() {
        assert_eq!("sqlite:///tmp/x.db".parse::<Location>().unwrap().path(), Path::new("/tmp/x.db"));
    }

    #[test]
    fn memory_is_refused_with_the_reason() {
        assert!("memory:".parse::<Location>().unwrap_err().contains("gone when this command ends"));
    }

    #[test]
    fn another_database_is_refused_by_name() {
        assert!("postgres://host/db".parse::<Location>().unwrap_err().contains("no store for `postgres:`"));
    }
}
