//! The file of settings, `onward.toml`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use toml::{Table, Value};

use super::table::SETTINGS;
use crate::exit_code::wrong_usage;

/// The name of the file that is read where none is named.
const NAME: &str = "onward.toml";

/// The largest file, in bytes.
const FILE_BYTES: u64 = 1024 * 1024;

/// The largest distance of a name that is suggested for an unknown one.
const NEAR: usize = 3;

/// The settings of a file: each key with its values, as they would be written behind the flag.
#[derive(Debug, Default)]
pub(super) struct FileSettings {
    /// The file; `None` if there is none.
    pub(super) path: Option<PathBuf>,
    pub(super) values: Vec<(&'static str, Vec<String>)>,
}

impl FileSettings {
    /// Reads a file, or the one in the working directory if none is named and there is one.
    ///
    /// # Errors
    /// Returns a usage error if the file cannot be read, or has a key or a value that is no
    /// setting.
    pub(super) fn read(named: Option<&Path>) -> anyhow::Result<Self> {
        let path = named.unwrap_or(Path::new(NAME));
        let text = match text(path) {
            Ok(text) => text,
            Err(error) if named.is_none() && error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => {
                let path = path.display();
                return Err(wrong_usage(format!(
                    "the settings in {path} cannot be read: {error}; name a file of TOML"
                )));
            }
        };
        let values = parse(&text).map_err(|error| wrong_usage(format!("{}: {error}", path.display())))?;
        Ok(Self { path: Some(path.to_owned()), values })
    }

    /// Returns the values of a setting.
    pub(super) fn get(&self, key: &str) -> Option<&[String]> {
        self.values.iter().find(|(known, _)| *known == key).map(|(_, values)| values.as_slice())
    }
}

fn text(path: &Path) -> io::Result<String> {
    let bytes = fs::metadata(path)?.len();
    if bytes > FILE_BYTES {
        return Err(io::Error::other(format!("it has {bytes} bytes of at most {FILE_BYTES}")));
    }
    fs::read_to_string(path)
}

fn parse(text: &str) -> Result<Vec<(&'static str, Vec<String>)>, String> {
    let table: Table = text.parse().map_err(|error: toml::de::Error| error.to_string().trim_end().to_owned())?;
    let mut values = Vec::new();
    for (key, value) in table {
        match value {
            Value::Table(inner) if is_group(&key) => {
                for (inner_key, value) in inner {
                    values.push(setting(&format!("{key}.{inner_key}"), value)?);
                }
            }
            value => values.push(setting(&key, value)?),
        }
    }
    Ok(values)
}

/// Returns true if a key is that of a table of settings.
fn is_group(key: &str) -> bool {
    SETTINGS.iter().any(|setting| setting.command() == Some(key))
}

fn setting(key: &str, value: Value) -> Result<(&'static str, Vec<String>), String> {
    let Some(known) = SETTINGS.iter().find(|setting| setting.key == key) else { return Err(unknown(key)) };
    let written = match value {
        Value::Boolean(is_set) if known.is_switch() => Ok(vec![is_set.to_string()]),
        Value::Array(values) => values.into_iter().map(written).collect(),
        value => written(value).map(|value| vec![value]),
    };
    written
        .map(|values| (known.key, values))
        .map_err(|is| format!("`{key}` is {is}; write {} as a text, a number or a list of texts", known.unit))
}

/// Returns a value as it would be written behind a flag, or what it is instead.
fn written(value: Value) -> Result<String, &'static str> {
    match value {
        Value::String(text) => Ok(text),
        Value::Integer(number) => Ok(number.to_string()),
        Value::Float(_) => Err("a fraction"),
        Value::Boolean(_) => Err("true or false"),
        Value::Datetime(_) => Err("a time"),
        Value::Array(_) => Err("a list in a list"),
        Value::Table(_) => Err("a table"),
    }
}

fn unknown(key: &str) -> String {
    let measured = SETTINGS.iter().map(|setting| (distance(key, setting.key), setting.key));
    match measured.min().filter(|(distance, _)| *distance <= NEAR) {
        Some((_, near)) => format!("`{key}` is no setting; write `{near}`"),
        None => format!("`{key}` is no setting; `onward config explain` lists all of them"),
    }
}

/// Returns the distance between two keys. A table that is left out costs one.
fn distance(key: &str, known: &str) -> usize {
    let whole = strsim::osa_distance(&key.replace('_', "-"), known);
    let last = known.rsplit_once('.').map(|(_, flag)| strsim::osa_distance(&key.replace('_', "-"), flag) + 1);
    last.map_or(whole, |last| whole.min(last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_numbers_and_lists_are_read() {
        let values = parse("store = \"work.db\"\n").expect("it is right");
        assert_eq!(values, [("store", vec!["work.db".to_owned()])]);
        assert!(parse("store = [\"a\", 7]").is_ok());
    }

    #[test]
    fn an_unknown_key_is_refused_with_the_nearest() {
        assert_eq!(parse("stor = \"x\"").unwrap_err(), "`stor` is no setting; write `store`");
        assert!(parse("colour = \"x\"").unwrap_err().contains("onward config explain"));
        assert!(parse("[other]\nx = 1").unwrap_err().contains("`other` is no setting"));
    }

    #[cfg(feature = "serve")]
    #[test]
    fn an_unknown_key_of_a_table_is_refused_with_the_nearest() {
        assert!(parse("[serve]\nlisen = \"x\"").unwrap_err().contains("write `serve.listen`"));
        assert!(parse("[serve]\ntls_cert = \"x\"").unwrap_err().contains("write `serve.tls-cert`"));
        assert!(parse("listen = \"x\"").unwrap_err().contains("write `serve.listen`"));
    }

    #[test]
    fn values_of_another_form_are_refused() {
        for text in ["store = true", "store = 1.5", "store = 2026-01-01", "store = [[\"a\"]]", "store = {a = 1}"] {
            assert!(parse(text).unwrap_err().contains("`store` is "), "{text}");
        }
        assert!(parse("store = \"a\"\nstore = \"b\"").unwrap_err().contains("duplicate"));
    }
}
