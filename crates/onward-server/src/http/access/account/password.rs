//! Hashes of passwords: argon2id, a few at once.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use argon2::password_hash::{PasswordHash, PasswordHasher as _, PasswordVerifier as _, SaltString};
use argon2::{Algorithm, Argon2, Params, Version};
use onward_store::Error;
use tokio::sync::Semaphore;

use crate::http::access::secret::new_salt;
use crate::http::bounds;

/// The memory of a hash in KiB, its passes and its parallelism, as OWASP recommends for argon2id.
const COSTS: (u32, u32, u32) = (19 * 1024, 2, 1);

/// A hash with the costs of every other, which no password has. It is compared where there is no
/// account, so that an unknown name takes as long as a wrong password.
pub(super) const DUMMY: &str =
    "$argon2id$v=19$m=19456,t=2,p=1$b253YXJkLW5vLWFjY291bnQ$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// Hashes passwords on threads for blocking work, [`bounds::HASHES`] at once: each takes 19 MiB
/// and some 20 ms of a processor.
#[derive(Debug, Clone)]
pub(super) struct PasswordHasher {
    places: Arc<Semaphore>,
    waiting: Arc<AtomicUsize>,
}

/// The error of a hash for which there was no room.
#[derive(Debug)]
pub(super) struct Busy;

impl fmt::Display for Busy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limit = bounds::HASHES_WAITING;
        write!(f, "{limit} sign-ins wait, which is the limit")
    }
}

impl PasswordHasher {
    pub(super) fn new() -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Self { places: Arc::new(Semaphore::new(processors.min(bounds::HASHES))), waiting: Arc::default() }
    }

    /// Returns the hash of a password, with a new salt.
    pub(super) async fn hash(&self, password: String) -> Result<String, Error> {
        let salt = new_salt()?;
        let hashed = self.run(move || {
            let salt = SaltString::encode_b64(&salt)?;
            Ok(argon2()?.hash_password(password.as_bytes(), &salt)?.to_string())
        });
        hashed.await.map_err(|busy| Error::io(format!("{busy}; try again")))?.map_err(
            |error: argon2::password_hash::Error| Error::corrupt(format!("the password cannot be hashed: {error}")),
        )
    }

    /// Returns true if a password has a hash.
    pub(super) async fn verify(&self, password: String, hash: String) -> Result<bool, Busy> {
        self.run(move || {
            let Ok(hash) = PasswordHash::new(&hash) else { return false };
            argon2().is_ok_and(|argon2| argon2.verify_password(password.as_bytes(), &hash).is_ok())
        })
        .await
    }

    async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, Busy> {
        let add = |waiting: usize| (waiting < bounds::HASHES_WAITING).then_some(waiting + 1);
        self.waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).map_err(|_| Busy)?;
        // The request may be dropped while it waits.
        let waiting = Waiting(Arc::clone(&self.waiting));
        let place = Arc::clone(&self.places).acquire_owned().await.map_err(|_| Busy)?;
        drop(waiting);
        let done = tokio::task::spawn_blocking(move || {
            let done = work();
            drop(place);
            done
        });
        done.await.map_err(|_| Busy)
    }
}

struct Waiting(Arc<AtomicUsize>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn argon2() -> Result<Argon2<'static>, argon2::password_hash::Error> {
    let (memory, passes, parallelism) = COSTS;
    let params = Params::new(memory, passes, parallelism, None)?;
    Ok(Argon2::new(Algorithm::Argon2id, Version::V0x13, params))
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn the_dummy_costs_as_much_as_a_hash() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let hash = runtime.block_on(PasswordHasher::new().hash("a-long-password".to_owned())).expect("a hash");
        let (hash, dummy) = (PasswordHash::new(&hash).expect("a hash"), PasswordHash::new(DUMMY).expect("a hash"));
        assert_eq!((hash.algorithm, hash.version), (dummy.algorithm, dummy.version));
        assert_eq!(hash.params, dummy.params);
        let bytes = |hash: &PasswordHash<'_>| hash.hash.map(|hash| hash.len());
        assert_eq!(bytes(&hash), bytes(&dummy));
    }

    #[test]
    fn a_password_has_its_own_hash_only() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            let hasher = PasswordHasher::new();
            let hash = hasher.hash("correct horse".to_owned()).await.expect("a hash");
            assert!(hasher.verify("correct horse".to_owned(), hash.clone()).await.expect("there is room"));
            assert!(!hasher.verify("correct house".to_owned(), hash.clone()).await.expect("there is room"));
            assert!(!hasher.verify("correct horse".to_owned(), DUMMY.to_owned()).await.expect("there is room"));
            assert_ne!(hasher.hash("correct horse".to_owned()).await.expect("a hash"), hash, "each has its own salt");
        });
    }

    #[test]
    fn more_than_a_bounded_number_does_not_wait() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            let hasher = PasswordHasher::new();
            let all = hasher.places.available_permits();
            let held = hasher.places.acquire_many(u32::try_from(all).expect("a few")).await.expect("it is open");
            let mut waiting: Vec<_> = (0..bounds::HASHES_WAITING).map(|_| Box::pin(hasher.run(|| ()))).collect();
            for one in &mut waiting {
                assert!(one.now_or_never().is_none());
            }
            assert!(hasher.run(|| ()).await.is_err());
            drop(waiting);
            drop(held);
            assert!(hasher.run(|| ()).await.is_ok(), "those that gave up wait no more");
        });
    }
}
