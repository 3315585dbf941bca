//! TLS: the certificate, its renewal, and its faults.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use onward_server::http::{Role, ServerOptions, Tls, TlsFiles, bounds};
use onward_store::{Clock, ManualClock};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::api::Api;
use crate::client::{Request, Response};

on_every_store! {
    requests_travel_over_tls,
    a_renewed_certificate_is_served_without_a_restart,
    a_reload_needs_no_wait,
    a_certificate_without_its_key_does_not_replace_the_one_before,
    a_silent_handshake_ends,
    a_stop_waits_for_no_handshake,
}

/// A certificate of this test, and its files.
struct Certificate {
    der: CertificateDer<'static>,
    files: TlsFiles,
}

fn pem(label: &str, der: &[u8]) -> String {
    let text = base64::engine::general_purpose::STANDARD.encode(der);
    let lines: Vec<&str> = text.as_bytes().chunks(64).map(|line| std::str::from_utf8(line).unwrap()).collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}

fn files(directory: &Path) -> TlsFiles {
    TlsFiles { certificate: directory.join("cert.pem"), key: directory.join("key.pem") }
}

/// Writes a new certificate that is valid in some years.
fn write_valid_in(directory: &Path, years: std::ops::Range<i32>) -> Certificate {
    let key = rcgen::KeyPair::generate().unwrap();
    let mut parameters = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    parameters.not_before = rcgen::date_time_ymd(years.start, 1, 1);
    parameters.not_after = rcgen::date_time_ymd(years.end, 1, 1);
    let certificate = parameters.self_signed(&key).unwrap();
    let files = files(directory);
    std::fs::write(&files.certificate, pem("CERTIFICATE", certificate.der())).unwrap();
    std::fs::write(&files.key, pem("PRIVATE KEY", &key.serialize_der())).unwrap();
    Certificate { der: certificate.der().clone(), files }
}

fn write(directory: &Path) -> Certificate {
    write_valid_in(directory, 2020..2500)
}

fn open(certificate: &Certificate, clock: &Arc<ManualClock>) -> Arc<Tls> {
    Arc::new(Tls::open(certificate.files.clone(), clock.clone()).unwrap())
}

/// Connects, and trusts these certificates only.
async fn connect(api: &Api, trusted: &[&Certificate]) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    trusted.iter().for_each(|certificate| roots.add(certificate.der.clone()).unwrap());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_root_certificates(roots).with_no_client_auth();
    let stream = TcpStream::connect(api.address).await?;
    TlsConnector::from(Arc::new(config)).connect(ServerName::try_from("localhost").unwrap(), stream).await
}

async fn send(stream: &mut TlsStream<TcpStream>, request: &Request) -> Response {
    stream.write_all(&request.bytes()).await.unwrap();
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes).await;
    Response::parse(&bytes)
}

/// Shows: W8
async fn requests_travel_over_tls(api: Api) {
    let directory = tempfile::tempdir().unwrap();
    let certificate = write(directory.path());
    let other = api.another_with_tls(open(&certificate, &api.clock), ServerOptions::default()).await;
    let mut stream = connect(&other, &[&certificate]).await.unwrap();
    let request = Request::new("GET", "/v1/keys").key(other.key(Role::Admin));
    send(&mut stream, &request).await.expect(200);
    // A client that speaks no TLS receives no response.
    let mut plain = TcpStream::connect(other.address).await.unwrap();
    plain.write_all(&request.bytes()).await.unwrap();
    let mut bytes = Vec::new();
    let _ = plain.read_to_end(&mut bytes).await;
    assert!(!String::from_utf8_lossy(&bytes).contains("HTTP"), "{bytes:?}");
}

/// Shows: W8
async fn a_renewed_certificate_is_served_without_a_restart(api: Api) {
    let directory = tempfile::tempdir().unwrap();
    let before = write(directory.path());
    let other = api.another_with_tls(open(&before, &api.clock), ServerOptions::default()).await;
    let mut open_before = connect(&other, &[&before]).await.unwrap();
    let after = write(directory.path());
    connect(&other, &[&before]).await.expect("the files were looked at just now");
    api.clock.advance(bounds::TLS_FILES_LOOK);
    connect(&other, &[&after]).await.expect("the new certificate is served");
    assert!(connect(&other, &[&before]).await.is_err());
    let request = Request::new("GET", "/v1/health/live");
    send(&mut open_before, &request).await.expect(200);
}

async fn a_reload_needs_no_wait(api: Api) {
    let directory = tempfile::tempdir().unwrap();
    let tls = open(&write(directory.path()), &api.clock);
    let other = api.another_with_tls(Arc::clone(&tls), ServerOptions::default()).await;
    let after = write(directory.path());
    tls.reload().unwrap();
    connect(&other, &[&after]).await.expect("the new certificate is served");
}

async fn a_certificate_without_its_key_does_not_replace_the_one_before(api: Api) {
    let (directory, beside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let before = write(directory.path());
    let tls = open(&before, &api.clock);
    let other = api.another_with_tls(Arc::clone(&tls), ServerOptions::default()).await;
    let after = write(beside.path());
    std::fs::copy(&after.files.certificate, &before.files.certificate).unwrap();
    assert!(tls.reload().unwrap_err().to_string().contains("is not the key of the certificate"));
    api.clock.advance(bounds::TLS_FILES_LOOK);
    connect(&other, &[&before]).await.expect("the certificate before is served");
    std::fs::copy(&after.files.key, &before.files.key).unwrap();
    api.clock.advance(bounds::TLS_FILES_LOOK);
    connect(&other, &[&after]).await.expect("the pair is whole");
}

async fn a_silent_handshake_ends(api: Api) {
    let directory = tempfile::tempdir().unwrap();
    let mut options = ServerOptions::default();
    options.limits.request_time = Duration::from_millis(300);
    let other = api.another_with_tls(open(&write(directory.path()), &api.clock), options).await;
    let mut silent = TcpStream::connect(other.address).await.unwrap();
    let mut byte = [0];
    assert!(matches!(silent.read(&mut byte).await, Ok(0) | Err(_)), "the server closes the connection");
}

async fn a_stop_waits_for_no_handshake(api: Api) {
    let directory = tempfile::tempdir().unwrap();
    let certificate = write(directory.path());
    let other = api.another_with_tls(open(&certificate, &api.clock), ServerOptions::default()).await;
    let mut silent = TcpStream::connect(other.address).await.unwrap();
    // The listener accepts in order, so the silent connection was accepted as well.
    connect(&other, &[&certificate]).await.unwrap();
    other.stop.cancel();
    let mut byte = [0];
    assert!(matches!(silent.read(&mut byte).await, Ok(0) | Err(_)));
    assert!(other.served.await.unwrap());
}

/// Opens files that were changed, and returns the error.
fn fault(change: impl FnOnce(&TlsFiles)) -> String {
    let directory = tempfile::tempdir().unwrap();
    let certificate = write(directory.path());
    change(&certificate.files);
    error(certificate.files)
}

fn error(files: TlsFiles) -> String {
    let clock: Arc<dyn Clock> = Arc::new(ManualClock::default());
    Tls::open(files, clock).unwrap_err().to_string()
}

/// Shows: W8
#[test]
fn each_fault_of_the_files_is_named() {
    let missing = fault(|files| std::fs::remove_file(&files.certificate).unwrap());
    assert!(missing.contains("cert.pem") && missing.contains("No such file"), "{missing}");
    let no_certificate = fault(|files| std::fs::copy(&files.key, &files.certificate).map(drop).unwrap());
    assert!(no_certificate.contains("it has no certificate"), "{no_certificate}");
    let no_key = fault(|files| std::fs::copy(&files.certificate, &files.key).map(drop).unwrap());
    assert!(no_key.contains("key.pem") && no_key.contains("private key in PEM"), "{no_key}");
    let nonsense = fault(|files| std::fs::write(&files.certificate, pem("CERTIFICATE", b"nonsense")).unwrap());
    assert!(nonsense.contains("cert.pem"), "{nonsense}");
    let other = tempfile::tempdir().unwrap();
    let other_key: PathBuf = write(other.path()).files.key;
    let mixed = fault(|files| std::fs::copy(&other_key, &files.key).map(drop).unwrap());
    assert!(mixed.contains("is not the key of the certificate"), "{mixed}");
}

/// Shows: W8
#[test]
fn a_certificate_out_of_its_time_is_refused() {
    // The clock of these tests begins in 2024.
    let directory = tempfile::tempdir().unwrap();
    let expired = error(write_valid_in(directory.path(), 2020..2023).files);
    assert!(expired.contains("it expired 2023-01-01T00:00:00"), "{expired}");
    let early = error(write_valid_in(directory.path(), 2030..2040).files);
    assert!(early.contains("not valid before 2030-01-01T00:00:00"), "{early}");
}
