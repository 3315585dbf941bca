//! The location of a store, as users write it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::exit_code::wrong_usage;

/// A SQLite file, given as a path or as `sqlite:PATH`; a PostgreSQL database, given by its URL; or
/// a server of Onward, given by its address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Location {
    File(PathBuf),
    /// The URL, with the password if it has one. Display leaves the password out.
    Server(String),
    /// The address of `onward serve`.
    Http(String),
}

impl Location {
    /// Returns the file, for commands that work only on a file. `on_server` names the way to do the
    /// same on a server.
    ///
    /// # Errors
    /// Returns a usage error if this is not a file. `on_server` is the remedy for a PostgreSQL
    /// database.
    pub(crate) fn file(&self, on_server: &str) -> anyhow::Result<&Path> {
        match self {
            Self::File(path) => Ok(path),
            Self::Http(_) => Err(wrong_usage(format!(
                "{self} is a server of Onward, and this command works on a SQLite file; give a file, such as onward.db"
            ))),
            Self::Server(_) => Err(wrong_usage(format!(
                "{self} is a PostgreSQL database, and this command works on a SQLite file; {on_server}"
            ))),
        }
    }
}

/// The error for a store in memory.
const IN_MEMORY: &str = "a store in memory would be gone when this command ends; give a file, such as onward.db";

/// The schemes of servers. A name of a file that begins like a URL is a URL with a mistake.
const SCHEMES: [&str; 4] = ["postgres", "postgresql", "http", "https"];

impl FromStr for Location {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let path = match text.split_once(':') {
            Some(("memory", _)) => {
                return Err(IN_MEMORY.into());
            }
            Some(("sqlite", ":memory:")) => return Err(IN_MEMORY.into()),
            Some(("sqlite", path)) => path.strip_prefix("//").unwrap_or(path),
            Some(("postgres" | "postgresql", rest)) if cfg!(feature = "postgres") && rest.starts_with("//") => {
                return Ok(Self::Server(text.to_owned()));
            }
            Some(("http" | "https", rest)) if cfg!(feature = "client") && rest.starts_with("//") => {
                return Ok(Self::Http(text.to_owned()));
            }
            Some((scheme, rest)) if rest.starts_with("//") => {
                return Err(format!(
                    "this build has no store for `{scheme}:`; give a file, such as onward.db or sqlite:PATH"
                ));
            }
            // Such a file would take the place of a server, without a word.
            Some((scheme, _)) if SCHEMES.contains(&scheme.to_ascii_lowercase().as_str()) => {
                return Err(format!(
                    "`{scheme}:` begins the address of a server, and `//` is missing behind it; write {scheme}://…, or ./{scheme}:… for a file"
                ));
            }
            Some((scheme, _)) if scheme.eq_ignore_ascii_case("file") => {
                return Err("a file is named by its path; write PATH or sqlite:PATH without `file:`".into());
            }
            _ => text,
        };
        if path.trim().is_empty() {
            return Err("the path is empty; give a file, such as onward.db".into());
        }
        Ok(Self::File(path.into()))
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Server(url) | Self::Http(url) => f.write_str(&without_secrets(url)),
        }
    }
}

/// Returns a URL without its password and its parameters, one of which may be a password. Returns
/// only the scheme if an unescaped character in a password may have ended it too early.
fn without_secrets(url: &str) -> String {
    let (scheme, rest) = url.split_once("//").unwrap_or(("", url));
    let behind_host = rest.find(['/', '?', '#']).map_or("", |end| &rest[end..]);
    if behind_host.contains('@') {
        return format!("{scheme}//…");
    }
    let (rest, schema) =
        rest.split_once('#').map_or((rest, String::new()), |(rest, schema)| (rest, format!("#{schema}")));
    let rest = rest.split_once('?').map_or(rest, |(rest, _)| rest);
    let (user, host) = rest.rsplit_once('@').map_or(("", rest), |(user, host)| (user, host));
    let user = user.split_once(':').map_or(user, |(user, _)| user);
    let at = if user.is_empty() { "" } else { "@" };
    format!("{scheme}//{user}{at}{host}{schema}")
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
        assert_eq!("sqlite:///tmp/x.db".parse(), Ok(Location::File("/tmp/x.db".into())));
    }

    #[test]
    fn memory_is_refused_with_the_reason() {
        assert!("memory:".parse::<Location>().unwrap_err().contains("gone when this command ends"));
    }

    #[test]
    fn the_address_of_a_server_without_its_slashes_is_no_file() {
        for typed in ["postgres:", "postgres:me@host/work", "Postgresql:work", "http:localhost:7070", "https:/host"] {
            assert!(typed.parse::<Location>().unwrap_err().contains("`//` is missing"), "{typed}");
        }
        assert_eq!("./postgres:x".parse(), Ok(Location::File("./postgres:x".into())));
    }

    #[test]
    fn a_path_that_is_meant_otherwise_is_no_file() {
        for typed in ["sqlite::memory:", "file:x.db", " "] {
            assert!(typed.parse::<Location>().is_err(), "{typed}");
        }
    }

    #[test]
    fn another_database_is_refused_by_name() {
        assert!("mysql://host/db".parse::<Location>().unwrap_err().contains("no store for `mysql:`"));
    }

    #[cfg(feature = "postgres")]
    #[test]
    fn a_database_is_shown_without_its_password() {
        let shown = |url: &str| url.parse::<Location>().unwrap().to_string();
        assert_eq!(shown("postgres://me:secret@host:5432/work#one"), "postgres://me@host:5432/work#one");
        assert_eq!(shown("postgres://me:s@cret@host/work?password=secret"), "postgres://me@host/work");
        assert_eq!(shown("postgres://host/work"), "postgres://host/work");
        for ended_early in ["me:se#cret@host/work", "me:se?cret@host/work", "me:s@e/cret@host/work"] {
            assert_eq!(shown(&format!("postgres://{ended_early}")), "postgres://…");
        }
    }

    #[cfg(feature = "postgres")]
    #[test]
    fn a_database_is_no_file() {
        let error = "postgres://host/work".parse::<Location>().unwrap().file("use pg_dump").unwrap_err().to_string();
        assert!(error.starts_with("postgres://host/work is a ") && error.ends_with("; use pg_dump"), "{error}");
    }
}
