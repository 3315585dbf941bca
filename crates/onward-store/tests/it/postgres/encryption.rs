//! Connections that are encrypted, or must be.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use onward_store::{Error, PostgresStore, Result, Store};
use onward_testkit::postgres::Server;

use super::trouble::{connect, submit};

/// A server with encryption, and the authority that signed its certificate for `localhost`.
struct Encrypting {
    server: Server,
    files: tempfile::TempDir,
}

impl Encrypting {
    /// Starts a server. Returns `None` if there is no server, or no `openssl` to make certificates
    /// with.
    fn start() -> Option<Self> {
        let server = Server::start()?;
        let files = tempfile::tempdir().unwrap();
        authority(files.path(), "ca")?;
        authority(files.path(), "other")?;
        signed(files.path(), "server", "localhost")?;
        signed(files.path(), "client", "onward")?;
        let copies = ["ca.crt", "server.crt", "server.key"].map(|name| (files.path().join(name), name));
        copies.iter().for_each(|(file, name)| server.take_file(file, name));
        server.stop("fast");
        server
            .configure("ssl = on\nssl_cert_file = 'server.crt'\nssl_key_file = 'server.key'\nssl_ca_file = 'ca.crt'\n");
        server.start_stopped();
        Some(Self { server, files })
    }

    /// Sets the rules of access, as in `pg_hba.conf`.
    fn admit(&self, lines: &str) {
        self.server.stop("fast");
        std::fs::write(self.server.data().join("pg_hba.conf"), lines).unwrap();
        self.server.start_stopped();
    }

    fn file(&self, name: &str) -> String {
        self.files.path().join(name).display().to_string()
    }

    fn url(&self, host: &str, parameters: &str) -> String {
        format!("postgres://onward@{host}:{}/postgres?{parameters}", self.server.port())
    }

    async fn open(&self, host: &str, parameters: &str) -> Result<PostgresStore> {
        PostgresStore::open(&self.url(host, parameters)).await
    }

    async fn refused(&self, host: &str, parameters: &str) -> Error {
        self.open(host, parameters).await.expect_err("it is refused")
    }
}

/// The arguments for a new key of a type that is generated quickly.
const NEW_KEY: [&str; 6] = ["req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];

/// Makes an authority that no program trusts.
fn authority(directory: &Path, name: &str) -> Option<()> {
    let subject = format!("/CN=authority {name}");
    let (key, certificate) = (format!("{name}.key"), format!("{name}.crt"));
    let own: [&str; 9] = ["-x509", "-days", "2", "-subj", &subject, "-keyout", &key, "-out", &certificate];
    openssl(directory, &[&NEW_KEY[..], &own].concat())
}

/// Makes a certificate that the authority `ca` signed.
fn signed(directory: &Path, file: &str, name: &str) -> Option<()> {
    let (key, request, certificate) = (format!("{file}.key"), format!("{file}.csr"), format!("{file}.crt"));
    let subject = format!("/CN={name}");
    openssl(directory, &[&NEW_KEY[..], &["-subj", &subject, "-keyout", &key, "-out", &request]].concat())?;
    std::fs::write(directory.join("names"), format!("subjectAltName=DNS:{name}\n")).unwrap();
    let sign =
        ["x509", "-req", "-days", "2", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-extfile", "names"];
    openssl(directory, &[&sign[..], &["-in", &request, "-out", &certificate]].concat())
}

/// Runs openssl. Prints the reason and returns `None` if the program is missing.
fn openssl(directory: &Path, arguments: &[&str]) -> Option<()> {
    let mut command = Command::new("openssl");
    command.current_dir(directory).args(arguments).stdin(Stdio::null()).stderr(Stdio::null());
    let Ok(status) = command.status() else {
        println!("not tested: there is no openssl to make certificates with");
        return None;
    };
    assert!(status.success(), "openssl {arguments:?}: {status}");
    Some(())
}

async fn is_encrypted(encrypting: &Encrypting) -> bool {
    let client = connect(&encrypting.url("localhost", "sslmode=disable")).await;
    let ours = "SELECT bool_and(s.ssl) FROM pg_stat_ssl s JOIN pg_stat_activity a USING (pid) WHERE a.application_name = 'onward'";
    client.query_one(ours, &[]).await.unwrap().get(0)
}

/// Shows: B4
#[tokio::test]
async fn a_connection_is_encrypted_where_the_server_can() {
    let Some(encrypting) = Encrypting::start() else { return };
    let store = encrypting.open("127.0.0.1", "").await.unwrap();
    store.apply(vec![submit()]).await.unwrap();
    assert!(is_encrypted(&encrypting).await);
}

/// Shows: B4
#[tokio::test]
async fn a_server_that_cannot_encrypt_is_refused_where_that_is_required() {
    let Some(server) = Server::start() else { return };
    let error = PostgresStore::open(&format!("{}?sslmode=require", server.url())).await.unwrap_err();
    assert!(error.to_string().contains("does not support TLS"), "{error}");
}

/// Shows: B4
#[tokio::test]
async fn a_server_that_requires_encryption_says_so_to_who_comes_without() {
    let Some(encrypting) = Encrypting::start() else { return };
    encrypting.admit("hostssl all all 127.0.0.1/32 trust\n");
    let error = encrypting.refused("127.0.0.1", "sslmode=disable").await;
    assert!(error.is_denied(), "{error:?}");
    assert!(error.to_string().contains("no encryption") && error.to_string().contains("sslmode"), "{error}");
    encrypting.open("127.0.0.1", "sslmode=require").await.unwrap();
}

/// Shows: B4
#[tokio::test]
async fn a_certificate_that_no_trusted_authority_signed_is_refused_with_the_remedy() {
    let Some(encrypting) = Encrypting::start() else { return };
    let other = encrypting.file("other.crt");
    for (mode, root) in [("verify-ca", &*other), ("verify-full", &other), ("verify-full", "system")] {
        let error = encrypting.refused("localhost", &format!("sslmode={mode}&sslrootcert={root}")).await;
        let text = error.to_string();
        assert!(text.contains("UnknownIssuer") && text.contains("sslrootcert=FILE"), "{mode} {root}: {text}");
    }
    let root = encrypting.file("ca.crt");
    encrypting.open("localhost", &format!("sslmode=verify-full&sslrootcert={root}")).await.unwrap();
}

/// Shows: B4
#[tokio::test]
async fn a_certificate_for_another_name_is_refused_where_the_name_is_looked_at() {
    let Some(encrypting) = Encrypting::start() else { return };
    let root = encrypting.file("ca.crt");
    let error = encrypting.refused("127.0.0.1", &format!("sslmode=verify-full&sslrootcert={root}")).await;
    assert!(error.to_string().contains("another name"), "{error}");
    encrypting.open("127.0.0.1", &format!("sslmode=verify-ca&sslrootcert={root}")).await.unwrap();
}

/// Shows: B4
#[tokio::test]
async fn a_role_may_show_who_it_is_by_a_certificate() {
    let Some(encrypting) = Encrypting::start() else { return };
    encrypting.admit("hostssl all all 127.0.0.1/32 cert\n");
    assert!(encrypting.refused("127.0.0.1", "sslmode=require").await.is_denied());
    let own = format!("sslcert={}&sslkey={}", encrypting.file("client.crt"), encrypting.file("client.key"));
    encrypting.open("127.0.0.1", &own).await.unwrap();
}

/// Shows: B4
#[tokio::test]
async fn a_file_that_is_no_certificate_is_named() {
    let file: PathBuf = tempfile::tempdir().unwrap().path().join("none.pem");
    let error =
        PostgresStore::open(&format!("postgres://localhost/d?sslrootcert={}", file.display())).await.unwrap_err();
    assert!(error.is_invalid() && error.to_string().contains("none.pem"), "{error}");
}

/// Another parser would read the options of encryption differently, and might accept less.
///
/// Shows: B4
#[tokio::test]
async fn what_is_no_url_is_refused_without_showing_it() {
    for text in ["host=localhost sslmode=verify-full password=secret", "mysql://onward:secret@localhost/d", ""] {
        let error = PostgresStore::open(text).await.unwrap_err();
        assert!(error.is_invalid() && error.to_string().contains("postgres://user@host/database"), "{error}");
        assert!(!error.to_string().contains("secret"), "{error}");
    }
}
