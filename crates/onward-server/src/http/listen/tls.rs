//! TLS: the certificate of a listener, which changes while connections stay open.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use onward_store::{Clock, Error, Timestamp};
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::{ClientHello, ParsedCertificate, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{CertificateError, RootCertStore, ServerConfig};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::file_state::FileState;
use crate::http::bounds;

/// The files of a certificate, in PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate, followed by those of the authorities between it and a root.
    pub certificate: PathBuf,
    /// The private key.
    pub key: PathBuf,
}

/// The certificate of a listener.
///
/// A connection looks at the files if the last look is [`bounds::TLS_FILES_LOOK`] ago, so a renewed
/// certificate needs no signal and an idle server reads nothing. Open connections keep the
/// certificate with which they began.
#[derive(Debug)]
pub struct Tls {
    files: TlsFiles,
    clock: Arc<dyn Clock>,
    config: Arc<ServerConfig>,
    current: Arc<Current>,
    seen: Mutex<LastCheck>,
}

/// The last look at the files.
#[derive(Debug)]
struct LastCheck {
    at: Duration,
    files: [FileState; 2],
}

/// The certificate for new connections.
#[derive(Debug)]
struct Current(RwLock<Arc<CertifiedKey>>);

impl ResolvesServerCert for Current {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner)))
    }
}

impl Tls {
    /// Reads the files of a certificate.
    ///
    /// # Errors
    /// Returns an error ([`is_invalid`](Error::is_invalid)) if a file cannot be read, or has no
    /// certificate or no key. The same holds if the key is not that of the certificate, or if the
    /// certificate has expired or is not valid yet.
    pub fn open(files: TlsFiles, clock: Arc<dyn Clock>) -> Result<Self, Error> {
        let provider = Arc::new(ring::default_provider());
        let seen = LastCheck { at: clock.steady(), files: states(&files) };
        let certificate = load(&files, &provider, clock.now())?;
        let current = Arc::new(Current(RwLock::new(Arc::new(certificate))));
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| Error::invalid(format!("TLS cannot be used: {error}")))?;
        let mut config =
            config.with_no_client_auth().with_cert_resolver(Arc::clone(&current) as Arc<dyn ResolvesServerCert>);
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self { files, clock, config: Arc::new(config), current, seen: Mutex::new(seen) })
    }

    /// Reads the files again. New connections have the new certificate.
    ///
    /// # Errors
    /// Returns the errors of [`open`](Self::open). The certificate stays as it was.
    pub fn reload(&self) -> Result<(), Error> {
        let files = states(&self.files);
        self.seen().files = files;
        let certificate = load(&self.files, self.config.crypto_provider(), self.clock.now())?;
        *self.current.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(certificate);
        Ok(())
    }

    /// Completes the handshake of a connection within a time.
    pub(super) async fn accept(
        self: &Arc<Self>,
        stream: TcpStream,
        within: Duration,
    ) -> io::Result<TlsStream<TcpStream>> {
        if self.is_look_due() {
            let tls = Arc::clone(self);
            // A failure of the look leaves the certificate as it was, which the log has.
            let _ = tokio::task::spawn_blocking(move || tls.reload_if_changed()).await;
        }
        let accepted = TlsAcceptor::from(Arc::clone(&self.config)).accept(stream);
        let late = |_| Err(io::Error::new(io::ErrorKind::TimedOut, "the TLS handshake took too long"));
        tokio::time::timeout(within, accepted).await.unwrap_or_else(late)
    }

    /// Returns true if the files are to be looked at, and notes the look.
    fn is_look_due(&self) -> bool {
        let now = self.clock.steady();
        let mut seen = self.seen();
        let is_due = now >= seen.at.saturating_add(bounds::TLS_FILES_LOOK);
        if is_due {
            seen.at = now;
        }
        is_due
    }

    fn reload_if_changed(&self) {
        // The two files of a certificate may be written one after the other. Between the writes
        // they do not fit, and the second write is another change.
        if self.seen().files == states(&self.files) {
            return;
        }
        match self.reload() {
            Ok(()) => tracing::info!(certificate = %self.files.certificate.display(), "the certificate was renewed"),
            Err(error) => tracing::warn!(%error, "the new certificate cannot be used, the one before stays"),
        }
    }

    fn seen(&self) -> std::sync::MutexGuard<'_, LastCheck> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn states(files: &TlsFiles) -> [FileState; 2] {
    [FileState::of(&files.certificate), FileState::of(&files.key)]
}

fn load(files: &TlsFiles, provider: &CryptoProvider, now: Timestamp) -> Result<CertifiedKey, Error> {
    let TlsFiles { certificate: path, key: key_path } = files;
    let chain = read_certificates(path)?;
    let key = PrivateKeyDer::from_pem_file(key_path)
        .map_err(|error| unreadable("key", key_path, &error.to_string(), "give the private key in PEM"))?;
    let certified = CertifiedKey::from_der(chain, key, provider).map_err(|error| match error {
        rustls::Error::InconsistentKeys(_) => Error::invalid(format!(
            "the key in {} is not the key of the certificate in {}; give the two files of one certificate",
            key_path.display(),
            path.display()
        )),
        error => unreadable("certificate", path, &error.to_string(), "give a certificate and its own key"),
    })?;
    check_time(&certified, provider, path, now)?;
    Ok(certified)
}

fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let remedy = "give the certificate in PEM, and those of its authorities behind it";
    let wrong = |message: &str| unreadable("certificate", path, message, remedy);
    let read = CertificateDer::pem_file_iter(path).map_err(|error| wrong(&error.to_string()))?;
    let chain: Vec<_> = read.collect::<Result<_, _>>().map_err(|error| wrong(&error.to_string()))?;
    if chain.is_empty() {
        return Err(wrong("it has no certificate"));
    }
    Ok(chain)
}

#[cold]
fn unreadable(what: &str, path: &Path, message: &str, remedy: &str) -> Error {
    Error::invalid(format!("the {what} file {} cannot be used: {message}; {remedy}", path.display()))
}

/// Checks that the certificate is valid now. Warns if it expires soon.
fn check_time(key: &CertifiedKey, provider: &CryptoProvider, path: &Path, now: Timestamp) -> Result<(), Error> {
    let wrong = |message: String| unreadable("certificate", path, &message, "renew it");
    match time_fault(key, provider, now) {
        Some(TimeFault::Expired(at)) => return Err(wrong(format!("it expired{at}"))),
        Some(TimeFault::NotYet(at)) => return Err(wrong(format!("it is not valid before{at}, and it is {now}"))),
        None => {}
    }
    if let Some(TimeFault::Expired(at)) = time_fault(key, provider, now.plus(bounds::TLS_EXPIRES_SOON)) {
        tracing::warn!("the certificate in {} expires{at}; renew it", path.display());
    }
    Ok(())
}

/// The fault of a certificate at a time, with the time up to or from which it is valid.
enum TimeFault {
    Expired(String),
    NotYet(String),
}

/// Returns the fault that the certificate has at a time. Clients, not servers, decide which
/// authorities they trust, so it is checked against none: the times are checked before them.
fn time_fault(key: &CertifiedKey, provider: &CryptoProvider, at: Timestamp) -> Option<TimeFault> {
    let certificate = ParsedCertificate::try_from(key.end_entity_cert().ok()?).ok()?;
    let microseconds = u64::try_from(at.as_microseconds()).unwrap_or(0);
    let now = UnixTime::since_unix_epoch(Duration::from_micros(microseconds));
    let algorithms = provider.signature_verification_algorithms.all;
    let checked =
        verify_server_cert_signed_by_trust_anchor(&certificate, &RootCertStore::empty(), &[], now, algorithms);
    match checked {
        Err(rustls::Error::InvalidCertificate(CertificateError::ExpiredContext { not_after, .. })) => {
            Some(TimeFault::Expired(shown(not_after)))
        }
        Err(rustls::Error::InvalidCertificate(CertificateError::NotValidYetContext { not_before, .. })) => {
            Some(TimeFault::NotYet(shown(not_before)))
        }
        Err(rustls::Error::InvalidCertificate(CertificateError::Expired)) => Some(TimeFault::Expired(String::new())),
        Err(rustls::Error::InvalidCertificate(CertificateError::NotValidYet)) => Some(TimeFault::NotYet(String::new())),
        _ => None,
    }
}

fn shown(time: UnixTime) -> String {
    let microseconds = i64::try_from(time.as_secs()).ok().and_then(|seconds| seconds.checked_mul(1_000_000));
    microseconds.map(|it| format!(" {}", Timestamp::from_microseconds(it))).unwrap_or_default()
}
