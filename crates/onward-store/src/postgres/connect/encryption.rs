//! TLS: the parameters of a URL, as PostgreSQL's own programs define them, and encrypted
//! connections.

use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::Socket;
use tokio_postgres::config::SslMode;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;

use crate::api::error::{Error, Result};
use crate::postgres::connect::environment::Defaults;

/// The checks of the server's certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Proof {
    /// No check. An eavesdropper can read nothing, but an active attacker can pass for the server.
    None,
    /// A trusted authority signed the certificate.
    Authority,
    /// In addition, the certificate is for the name in the URL.
    Name,
}

/// The TLS parameters of a URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TlsParameters {
    /// The use of encryption: never, if possible, or always.
    pub(in crate::postgres) mode: SslMode,
    /// The check that `sslmode` and `sslrootcert` require.
    proof: Proof,
    /// The file with trusted authorities, or [`SYSTEM`].
    root: Option<String>,
    /// The file with the client's certificate.
    certificate: Option<String>,
    /// The file with the client's private key.
    key: Option<String>,
}

/// The value of `sslrootcert` that stands for the operating system's trusted authorities.
const SYSTEM: &str = "system";

impl TlsParameters {
    /// Takes the TLS parameters out of a URL, and `defaults` for missing ones. Returns the rest of
    /// the URL as well.
    pub(in crate::postgres) fn take_from(url: &str, defaults: &Defaults) -> Result<(Self, String)> {
        let default = |name| defaults.get(name).map(str::to_owned);
        let (root, certificate, key) = (default("sslrootcert"), default("sslcert"), default("sslkey"));
        let mut wanted = Self { mode: SslMode::Prefer, proof: Proof::None, root, certificate, key };
        let (place, parameters) = url.split_once('?').unwrap_or((url, ""));
        let mut others = Vec::new();
        let mut mode = default("sslmode").unwrap_or_default();
        for parameter in parameters.split('&').filter(|parameter| !parameter.is_empty()) {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            match decoded(name)?.as_str() {
                "sslmode" => mode = decoded(value)?,
                "sslrootcert" => wanted.root = Some(decoded(value)?),
                "sslcert" => wanted.certificate = Some(decoded(value)?),
                "sslkey" => wanted.key = Some(decoded(value)?),
                _ => others.push(parameter),
            }
        }
        (wanted.mode, wanted.proof) = meaning(&mode, wanted.root.as_deref())?;
        let mark = if others.is_empty() { "" } else { "?" };
        Ok((wanted, format!("{place}{mark}{}", others.join("&"))))
    }

    /// Reads the named files, and builds the TLS configuration.
    pub(super) fn connector(&self) -> Result<Tls> {
        let provider = Arc::new(ring::default_provider());
        let verifier = self.verifier(&provider)?;
        let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = config.map_err(unusable)?.dangerous().with_custom_certificate_verifier(Arc::new(verifier));
        let config = match (&self.certificate, &self.key) {
            (Some(certificate), Some(key)) => {
                config.with_client_auth_cert(certificates(certificate)?, private_key(key)?).map_err(unusable)?
            }
            (None, None) => config.with_no_client_auth(),
            _ => return Err(Error::invalid("a certificate of one's own needs both `sslcert` and `sslkey` in the URL")),
        };
        Ok(Tls(Arc::new(config)))
    }

    /// Builds the check of the server's certificate.
    fn verifier(&self, provider: &Arc<CryptoProvider>) -> Result<Verifier> {
        let authorities = match self.proof {
            Proof::None => None,
            Proof::Authority | Proof::Name => {
                let roots = Arc::new(self.roots()?);
                Some(
                    WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(provider))
                        .build()
                        .map_err(unusable)?,
                )
            }
        };
        Ok(Verifier { provider: Arc::clone(provider), authorities, proof: self.proof })
    }

    /// Reads the trusted authorities.
    fn roots(&self) -> Result<RootCertStore> {
        let mut roots = RootCertStore::empty();
        match self.root.as_deref() {
            Some(file) if file != SYSTEM => {
                for certificate in certificates(file)? {
                    roots.add(certificate).map_err(|error| not_readable(file, &error))?;
                }
            }
            // Some certificates of an operating system are in formats that rustls does not support.
            _ => drop(roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs)),
        }
        Ok(roots)
    }
}

/// Returns the use of encryption and the check of the certificate for an `sslmode`, as libpq
/// defines them.
fn meaning(mode: &str, root: Option<&str>) -> Result<(SslMode, Proof)> {
    Ok(match mode {
        // Any server can have a certificate of a public authority, for its own name. Only the check
        // of the name makes that one mean something.
        "disable" | "allow" | "prefer" | "verify-ca" if root == Some(SYSTEM) => {
            return Err(Error::invalid(format!(
                "`sslmode={mode}` does not look at the server's name, and so cannot go with `sslrootcert=system`; use verify-full"
            )));
        }
        "disable" => (SslMode::Disable, Proof::None),
        // libpq checks the certificate if a root is named, even with `require`.
        "require" | "" if root == Some(SYSTEM) => (SslMode::Require, Proof::Name),
        "require" | "" if root.is_some() => (SslMode::Require, Proof::Authority),
        "require" => (SslMode::Require, Proof::None),
        "prefer" | "allow" | "" => (SslMode::Prefer, Proof::None),
        "verify-ca" => (SslMode::Require, Proof::Authority),
        "verify-full" => (SslMode::Require, Proof::Name),
        other => {
            return Err(Error::invalid(format!(
                "`sslmode={other}` is unknown; it may be disable, prefer, require, verify-ca or verify-full"
            )));
        }
    })
}

/// Decodes a name or a value of a URL, in which `%2F` stands for `/`.
fn decoded(value: &str) -> Result<String> {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.as_bytes();
    while let [first, after @ ..] = rest {
        let escaped = (*first == b'%').then(|| after.split_at_checked(2)).flatten();
        let byte = escaped.and_then(|(digits, _)| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = match (byte, escaped) {
            (Some(_), Some((_, behind))) => behind,
            _ => after,
        };
    }
    String::from_utf8(bytes).map_err(|_| Error::invalid("a parameter of the PostgreSQL URL is not UTF-8"))
}

/// Reads the certificates of a PEM file.
fn certificates(file: &str) -> Result<Vec<CertificateDer<'static>>> {
    let read =
        CertificateDer::pem_file_iter(Path::new(file)).and_then(Iterator::collect::<std::result::Result<Vec<_>, _>>);
    match read {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        Ok(_) => Err(Error::invalid(format!("there is no certificate in `{file}`; name a file in PEM form"))),
        Err(error) => Err(not_readable(file, &error)),
    }
}

/// Reads the private key of a PEM file.
fn private_key(file: &str) -> Result<PrivateKeyDer<'static>> {
    PrivateKeyDer::from_pem_file(Path::new(file)).map_err(|error| not_readable(file, &error))
}

/// The error for a file that cannot be read or decoded.
#[cold]
fn not_readable(file: &str, error: &dyn std::fmt::Display) -> Error {
    Error::invalid(format!("`{file}` cannot be used for TLS: {error}; name a file in PEM form that may be read"))
}

/// The error for a TLS configuration that rustls rejects.
#[cold]
fn unusable(error: impl std::fmt::Display) -> Error {
    Error::invalid(format!("TLS cannot be used as the PostgreSQL URL has it: {error}"))
}

/// Returns the remedy for a connection that failed because of TLS, or `None` if TLS was not the
/// cause.
pub(in crate::postgres) fn remedy(error: &tokio_postgres::Error) -> Option<&'static str> {
    let cause = std::error::Error::source(error)?;
    let of_tls = cause.downcast_ref::<io::Error>()?.get_ref()?.downcast_ref::<rustls::Error>()?;
    Some(match of_tls {
        rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer) => {
            "no authority that is trusted here signed the server's certificate: name that of the one who did with `sslrootcert=FILE` in the URL"
        }
        rustls::Error::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        ) => {
            "the server's certificate is for another name: connect by a name that it is for, or use `sslmode=verify-ca`"
        }
        rustls::Error::InvalidCertificate(CertificateError::Expired | CertificateError::ExpiredContext { .. }) => {
            "give the server a new certificate"
        }
        _ => "see `sslmode`, `sslrootcert`, `sslcert` and `sslkey` in the URL",
    })
}

/// A factory for encrypted connections.
#[derive(Debug, Clone)]
pub(super) struct Tls(Arc<ClientConfig>);

impl MakeTlsConnect<Socket> for Tls {
    type Stream = Encrypted;
    type TlsConnect = Handshake;
    type Error = rustls::pki_types::InvalidDnsNameError;

    fn make_tls_connect(&mut self, domain: &str) -> std::result::Result<Handshake, Self::Error> {
        // A directory of sockets is not a host name, and connections over it are not encrypted.
        let name = if domain.starts_with('/') || domain.is_empty() { "localhost" } else { domain };
        Ok(Handshake { config: Arc::clone(&self.0), name: ServerName::try_from(name.to_owned())? })
    }
}

/// A connection before its TLS handshake.
pub(in crate::postgres) struct Handshake {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl TlsConnect<Socket> for Handshake {
    type Stream = Encrypted;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Encrypted>> + Send>>;

    fn connect(self, stream: Socket) -> Self::Future {
        let Self { config, name } = self;
        Box::pin(async move { Ok(Encrypted(Box::new(TlsConnector::from(config).connect(name, stream).await?))) })
    }
}

/// An encrypted connection.
pub(in crate::postgres) struct Encrypted(Box<tokio_rustls::client::TlsStream<Socket>>);

impl TlsStream for Encrypted {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for Encrypted {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, into)
    }
}

impl AsyncWrite for Encrypted {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}

/// A check of the server's certificate, as strict as `proof`. The signatures of the handshake are
/// always verified, so the server must have the certificate's key.
#[derive(Debug)]
struct Verifier {
    provider: Arc<CryptoProvider>,
    authorities: Option<Arc<WebPkiServerVerifier>>,
    proof: Proof,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> std::result::Result<ServerCertVerified, rustls::Error> {
        let Some(authorities) = &self.authorities else { return Ok(ServerCertVerified::assertion()) };
        match authorities.verify_server_cert(certificate, between, name, ocsp, now) {
            // The name is checked last, so everything else about the certificate is valid.
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if self.proof == Proof::Authority => Ok(ServerCertVerified::assertion()),
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(url: &str) -> (SslMode, Proof, String) {
        let (wanted, rest) = TlsParameters::take_from(url, &Defaults::default()).unwrap();
        (wanted.mode, wanted.proof, rest)
    }

    #[test]
    fn what_is_said_of_tls_is_taken_out_of_a_url_and_nothing_else() {
        let url = "postgres://u:p@h/d?options=-c%20a=b&sslmode=verify-full&connect_timeout=3";
        let rest = "postgres://u:p@h/d?options=-c%20a=b&connect_timeout=3".to_owned();
        assert_eq!(taken(url), (SslMode::Require, Proof::Name, rest));
        assert_eq!(taken("postgres://h/d"), (SslMode::Prefer, Proof::None, "postgres://h/d".to_owned()));
        assert_eq!(
            taken("postgres://h/d?sslmode=disable"),
            (SslMode::Disable, Proof::None, "postgres://h/d".to_owned())
        );
    }

    #[test]
    fn a_root_that_is_named_is_looked_at() {
        assert_eq!(taken("postgres://h/d?sslmode=require").1, Proof::None);
        assert_eq!(taken("postgres://h/d?sslmode=require&sslrootcert=/a.pem").1, Proof::Authority);
        assert_eq!(taken("postgres://h/d?sslrootcert=/a.pem").0, SslMode::Require);
        assert_eq!(taken("postgres://h/d?sslrootcert=system").1, Proof::Name);
    }

    #[test]
    fn a_mode_that_does_not_look_at_the_name_is_refused_with_the_roots_of_the_system() {
        for mode in ["disable", "allow", "prefer", "verify-ca"] {
            let url = format!("postgres://h/d?sslmode={mode}&sslrootcert=system");
            let error = TlsParameters::take_from(&url, &Defaults::default()).unwrap_err();
            assert!(error.is_invalid() && error.to_string().contains("verify-full"), "{error}");
        }
        assert_eq!(taken("postgres://h/d?sslmode=require&sslrootcert=system").1, Proof::Name);
    }

    /// If the parameter stayed in the URL, the driver would apply its own weaker meaning.
    #[test]
    fn a_parameter_whose_name_is_escaped_counts_as_well() {
        assert_eq!(taken("postgres://h/d?%73slmode=verify-full").1, Proof::Name);
    }

    #[test]
    fn an_unknown_mode_is_refused_with_those_that_there_are() {
        let error = TlsParameters::take_from("postgres://h/d?sslmode=maybe", &Defaults::default()).unwrap_err();
        assert!(error.is_invalid() && error.to_string().contains("verify-full"), "{error}");
    }

    #[test]
    fn a_file_name_may_be_escaped() {
        assert_eq!(decoded("%2Fetc%2fa%20b.pem").unwrap(), "/etc/a b.pem");
        assert_eq!(decoded("100%").unwrap(), "100%");
    }
}
