//! Onward for other processes.
//!
//! [`gateway`] runs the tasks of an engine in workers of any language. [`http`] puts an engine
//! behind HTTP: it returns an axum router, which the program `onward serve` puts behind a listener,
//! and which another program can mount under its own.
//!
//! ```
//! # #[cfg(feature = "http")]
//! use std::{sync::Arc, time::Duration};
//!
//! # #[cfg(feature = "http")]
//! use onward_server::http::{Listener, NewKey, Keys, Role, Server, ServerOptions};
//! # #[cfg(feature = "http")]
//! use onward_store::{MemoryStore, Store};
//! # #[cfg(feature = "http")]
//! use tokio_util::sync::CancellationToken;
//!
//! # #[cfg(feature = "http")]
//! #[tokio::main(flavor = "current_thread")]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
//!     let name = "ci".to_owned();
//!     let new = NewKey { name, role: Role::Operator, expires_after: None };
//!     let (key, _) = Keys::new(Arc::clone(&store)).create(new).await?;
//!
//!     // The server submits and reads; engines on the same store run the tasks.
//!     let server = Server::open(store, ServerOptions::default()).await?;
//!     let listener = Listener::bind("127.0.0.1:0".parse()?).await?;
//!     println!("http://{} with the key {key}", listener.local_address()?);
//!
//!     let stop = CancellationToken::new();
//!     // A program cancels it from another task, for example after a signal.
//!     stop.cancel();
//!     let have_ended = listener.serve(&server, stop, Duration::from_secs(5)).await;
//!     assert!(have_ended);
//!     server.close().await?;
//!     Ok(())
//! }
//! # #[cfg(not(feature = "http"))]
//! # fn main() {}
//! ```

pub mod gateway;
#[cfg(feature = "http")]
pub mod http;
