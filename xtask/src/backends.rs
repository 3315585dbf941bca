//! What the tests need beside cargo, store by store.
//!
//! `ONWARD_REQUIRE_BACKENDS` says which stores must be there: `all`, or names with commas between. A required store that
//! cannot be prepared is an error; one that is not required is reported and its tests skip themselves.

use anyhow::{Result, bail};

use crate::{libzmq, python_zmq};

/// The variable that says which stores must be tested.
pub(crate) const REQUIRE: &str = "ONWARD_REQUIRE_BACKENDS";

/// A store that the tests run on.
struct Backend {
    name: &'static str,
    /// Installs or starts what the store needs and answers the variables that tell the tests where it is.
    prepare: fn() -> Result<Vec<(String, String)>>,
}

const BACKENDS: &[Backend] = &[
    Backend { name: "memory", prepare: nothing },
    // Built into the test programs.
    Backend { name: "sqlite", prepare: nothing },
    // No store, but another implementation that the transport is tested with.
    Backend { name: "libzmq", prepare: libzmq::prepare },
    Backend { name: "python3-zmq", prepare: python_zmq::prepare },
];

fn nothing() -> Result<Vec<(String, String)>> {
    Ok(Vec::new())
}

/// Prepares every store and answers the variables for the tests.
pub(crate) fn prepare() -> Result<Vec<(String, String)>> {
    let required = std::env::var(REQUIRE).unwrap_or_default();
    prepare_all(BACKENDS, &required)
}

fn prepare_all(backends: &[Backend], required: &str) -> Result<Vec<(String, String)>> {
    let required: Vec<&str> = required.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    if let Some(unknown) = required.iter().find(|name| **name != "all" && backends.iter().all(|it| it.name != **name)) {
        let known: Vec<&str> = backends.iter().map(|backend| backend.name).collect();
        bail!("{REQUIRE} names `{unknown}`; it may be `all` or some of {}", known.join(","));
    }
    let mut variables = Vec::new();
    for backend in backends {
        let is_required = required.contains(&"all") || required.contains(&backend.name);
        match (backend.prepare)() {
            Ok(more) => variables.extend(more),
            Err(error) if is_required => return Err(error.context(format!("{REQUIRE} requires {}", backend.name))),
            Err(error) => println!("not tested: {}: {error:#}", backend.name),
        }
    }
    Ok(variables)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PREPARED: Backend = Backend { name: "there", prepare: || Ok(vec![("WHERE".into(), "here".into())]) };
    const MISSING: Backend = Backend { name: "missing", prepare: || bail!("no server") };

    #[test]
    fn a_prepared_store_tells_the_tests_where_it_is() {
        assert_eq!(prepare_all(&[PREPARED], "all").unwrap(), [("WHERE".to_owned(), "here".to_owned())]);
    }

    #[test]
    fn a_missing_store_is_an_error_only_where_it_is_required() {
        assert!(prepare_all(&[PREPARED, MISSING], "there").is_ok());
        assert!(prepare_all(&[PREPARED, MISSING], "there,missing").is_err());
        assert!(prepare_all(&[PREPARED, MISSING], "all").is_err());
    }

    #[test]
    fn an_unknown_name_is_an_error() {
        assert!(prepare_all(&[PREPARED], "their").is_err());
    }
}
