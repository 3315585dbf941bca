//! The needs of the tests beyond cargo, store by store.
//!
//! `ONWARD_REQUIRE_BACKENDS` lists the stores that must be present: `all`, or names separated by
//! commas. A required store that cannot be prepared is an error. A store that is not required is
//! reported, and its tests print that they did not run.

use anyhow::{Result, bail};

use super::postgres::Server;
use super::{libzmq, microsocks, python_zmq};

/// The variable that lists the stores that must be tested.
pub(crate) const REQUIRE: &str = "ONWARD_REQUIRE_BACKENDS";

/// A store that the tests run on.
struct Backend {
    name: &'static str,
    /// Installs or starts what the store needs.
    prepare: fn() -> Result<Ready>,
}

const BACKENDS: &[Backend] = &[
    Backend { name: "memory", prepare: nothing },
    // SQLite is built into the test programs.
    Backend { name: "sqlite", prepare: nothing },
    Backend { name: "postgres", prepare: postgres },
    // The following are not stores, but other programs that the transport is tested with.
    Backend { name: "libzmq", prepare: libzmq },
    Backend { name: "python3-zmq", prepare: python_zmq },
    Backend { name: "microsocks", prepare: microsocks },
];

/// The prepared stores. Their servers run until this value is dropped.
#[derive(Debug, Default)]
pub(crate) struct Ready {
    /// The variables by which the tests find the stores.
    pub(crate) variables: Vec<(String, String)>,
    /// Packages, and the features under which their tests are built.
    pub(crate) features: Vec<(&'static str, &'static str)>,
    servers: Vec<Server>,
}

impl Ready {
    /// Returns the arguments with which cargo builds the tests of every prepared store.
    pub(crate) fn feature_arguments(&self) -> impl Iterator<Item = String> {
        self.features.iter().map(|(_, feature)| format!("--features={feature}"))
    }

    fn add(&mut self, more: Self) {
        self.variables.extend(more.variables);
        self.features.extend(more.features);
        self.servers.extend(more.servers);
    }
}

fn nothing() -> Result<Ready> {
    Ok(Ready::default())
}

fn postgres() -> Result<Ready> {
    let server = Server::start()?;
    Ok(Ready {
        variables: server.variables(),
        features: vec![("onward-store", "onward-store/postgres"), ("onward", "onward/postgres")],
        servers: vec![server],
    })
}

fn libzmq() -> Result<Ready> {
    Ok(Ready { variables: libzmq::prepare()?, ..Ready::default() })
}

fn python_zmq() -> Result<Ready> {
    Ok(Ready { variables: python_zmq::prepare()?, ..Ready::default() })
}

fn microsocks() -> Result<Ready> {
    Ok(Ready { variables: microsocks::prepare()?, ..Ready::default() })
}

/// Prepares every store.
pub(crate) fn prepare() -> Result<Ready> {
    let required = std::env::var(REQUIRE).unwrap_or_default();
    prepare_all(BACKENDS, &required)
}

/// Prepares one store. Returns an error if that is not possible.
pub(crate) fn prepare_only(name: &str) -> Result<Ready> {
    let Some(backend) = BACKENDS.iter().find(|backend| backend.name == name) else {
        let known: Vec<&str> = BACKENDS.iter().map(|backend| backend.name).collect();
        bail!("there is no store `{name}`; the stores are {}", known.join(", "))
    };
    (backend.prepare)()
}

fn prepare_all(backends: &[Backend], required: &str) -> Result<Ready> {
    let required: Vec<&str> = required.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    if let Some(unknown) = required.iter().find(|name| **name != "all" && backends.iter().all(|it| it.name != **name)) {
        let known: Vec<&str> = backends.iter().map(|backend| backend.name).collect();
        bail!("{REQUIRE} names `{unknown}`; it may be `all` or some of {}", known.join(","));
    }
    let mut ready = Ready::default();
    for backend in backends {
        let is_required = required.contains(&"all") || required.contains(&backend.name);
        match (backend.prepare)() {
            Ok(more) => ready.add(more),
            Err(error) if is_required => return Err(error.context(format!("{REQUIRE} requires {}", backend.name))),
            Err(error) => println!("not tested: {}: {error:#}", backend.name),
        }
    }
    Ok(ready)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PREPARED: Backend = Backend { name: "there", prepare: || Ok(there()) };
    const MISSING: Backend = Backend { name: "missing", prepare: || bail!("no server") };

    fn there() -> Ready {
        Ready { variables: vec![("WHERE".into(), "here".into())], ..Ready::default() }
    }

    #[test]
    fn a_prepared_store_passes_its_location_to_the_tests() {
        assert_eq!(prepare_all(&[PREPARED], "all").unwrap().variables, [("WHERE".to_owned(), "here".to_owned())]);
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
