//! The server of the tests, if there is one.

use onward_store::{PostgresOptions, PostgresStore};

/// The variable with the URL of the server; `cargo xtask test` sets it.
const URL: &str = "ONWARD_POSTGRES_URL";

/// The variable with the URL of a pooler in transaction mode in front of the same server.
const POOLER_URL: &str = "ONWARD_PGBOUNCER_URL";

/// A way to the server.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Way {
    Direct,
    Pooler,
}

impl Way {
    /// Returns the URL, if `cargo xtask test` started a server.
    pub(crate) fn url(self) -> Result<String, String> {
        let variable = match self {
            Self::Direct => URL,
            Self::Pooler => POOLER_URL,
        };
        let url = std::env::var(variable);
        let required = std::env::var("ONWARD_REQUIRE_BACKENDS").unwrap_or_default();
        let is_required = required.split(',').any(|name| matches!(name.trim(), "all" | "postgres"));
        assert!(url.is_ok() || !is_required, "PostgreSQL is required; run the tests with `cargo xtask test`");
        url.map_err(|_| format!("{variable} is not set; `cargo xtask test` starts PostgreSQL"))
    }
}

/// Returns the URL of the server. If there is none, prints that and returns `None`, and the test
/// ends.
pub(crate) fn url() -> Option<String> {
    let url = Way::Direct.url();
    if let Err(why) = &url {
        println!("not tested: {why}");
    }
    url.ok()
}

/// Opens a store on the server.
pub(crate) async fn open(url: &str, options: PostgresOptions) -> PostgresStore {
    options.open(url).await.expect("a store opens")
}
