//! Defaults of a PostgreSQL URL, by the conventions of libpq: a service file, `PG…` variables, a
//! password file.
//!
//! The URL counts first, then the service, then the variables. See
//! <https://www.postgresql.org/docs/current/libpq-envars.html>, and `libpq-pgservice` and
//! `libpq-pgpass` beside it.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use tokio_postgres::Config;
use tokio_postgres::config::Host;

use crate::api::error::{Error, Result};

/// The variable that stands for each parameter of a URL.
const VARIABLES: &[(&str, &str)] = &[
    ("host", "PGHOST"),
    ("port", "PGPORT"),
    ("user", "PGUSER"),
    ("dbname", "PGDATABASE"),
    ("password", "PGPASSWORD"),
    ("sslmode", "PGSSLMODE"),
    ("sslrootcert", "PGSSLROOTCERT"),
    ("sslcert", "PGSSLCERT"),
    ("sslkey", "PGSSLKEY"),
    ("options", "PGOPTIONS"),
    ("application_name", "PGAPPNAME"),
    ("connect_timeout", "PGCONNECT_TIMEOUT"),
    ("target_session_attrs", "PGTARGETSESSIONATTRS"),
    ("passfile", "PGPASSFILE"),
];

/// The permissions of users who do not own a file.
const OF_OTHERS: u32 = 0o077;

/// The parameters of a connection that a URL leaves open, by the names that a URL has for them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Defaults(BTreeMap<String, String>);

impl Defaults {
    /// Reads the service that `service` or `PGSERVICE` names, and the variables.
    ///
    /// # Errors
    /// [`is_invalid`](Error::is_invalid) if a service is named that no file has.
    pub(in crate::postgres) fn read(
        service: Option<String>,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self> {
        let mut defaults = match service.or_else(|| variable("PGSERVICE")) {
            Some(service) => Self(read_service(&service, variable)?),
            None => Self::default(),
        };
        for (name, of) in VARIABLES {
            if let Some(value) = variable(of).filter(|value| !value.is_empty()) {
                defaults.0.entry((*name).to_owned()).or_insert(value);
            }
        }
        if let Some(home) = variable("HOME") {
            let file = Path::new(&home).join(".pgpass").to_string_lossy().into_owned();
            defaults.0.entry("passfile".to_owned()).or_insert(file);
        }
        Ok(defaults)
    }

    /// Returns the value of a parameter.
    pub(in crate::postgres) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Adds the port to the hosts of a URL that have none: the driver would take the usual one for
    /// them.
    ///
    /// # Errors
    /// [`is_invalid`](Error::is_invalid) for a port that is no number.
    pub(super) fn add_port(&self, url: &str) -> Result<String> {
        let (Some(port), Some((scheme, rest))) = (self.get("port"), url.split_once("://")) else {
            return Ok(url.to_owned());
        };
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let start = rest[..end].rfind('@').map_or(0, |at| at + 1);
        let (user, hosts, path) = (&rest[..start], &rest[start..end], &rest[end..]);
        if hosts.is_empty() || port.contains(',') {
            return Ok(url.to_owned());
        }
        check_port(port)?;
        // An IPv6 address stands in brackets, and has colons of its own.
        let has_port = |host: &&str| host.rsplit(']').next().is_some_and(|behind| behind.contains(':'));
        let hosts =
            hosts.split(',').map(|host| if has_port(&host) { host.to_owned() } else { format!("{host}:{port}") });
        Ok(format!("{scheme}://{user}{}{path}", hosts.collect::<Vec<_>>().join(",")))
    }

    /// Sets the values that `config` leaves open. The password is last, because all other values
    /// decide which entry of the password file applies.
    ///
    /// # Errors
    /// [`is_invalid`](Error::is_invalid) for a value that is not valid. The error names its
    /// variable.
    pub(super) fn fill_in(&self, config: &mut Config) -> Result<()> {
        if config.get_hosts().is_empty() {
            for host in self.get("host").unwrap_or(LOCAL).split(',') {
                config.host(host);
            }
        }
        if config.get_ports().is_empty() {
            for port in self.get("port").into_iter().flat_map(|ports| ports.split(',')) {
                config.port(check_port(port)?);
            }
        }
        // Without any, the driver takes the name of the user of the operating system.
        if let Some(user) = self.get("user").filter(|_| config.get_user().is_none()) {
            config.user(user);
        }
        if let Some(name) = self.get("dbname").filter(|_| config.get_dbname().is_none()) {
            config.dbname(name);
        }
        if let Some(options) = self.get("options").filter(|_| config.get_options().is_none()) {
            config.options(options);
        }
        if let Some(name) = self.get("application_name").filter(|_| config.get_application_name().is_none()) {
            config.application_name(name);
        }
        self.fill_in_timeout(config)?;
        self.fill_in_attributes(config)?;
        self.fill_in_password(config);
        Ok(())
    }

    /// Sets the time to connect; as in libpq, 0 means no limit.
    fn fill_in_timeout(&self, config: &mut Config) -> Result<()> {
        let Some(text) = self.get("connect_timeout").filter(|_| config.get_connect_timeout().is_none()) else {
            return Ok(());
        };
        let seconds: u64 = text.parse().map_err(|_| wrong("connect_timeout", text, "write seconds"))?;
        if seconds > 0 {
            config.connect_timeout(std::time::Duration::from_secs(seconds));
        }
        Ok(())
    }

    /// Sets which kind of server to accept.
    fn fill_in_attributes(&self, config: &mut Config) -> Result<()> {
        use tokio_postgres::config::TargetSessionAttrs as Attributes;
        if config.get_target_session_attrs() != Attributes::Any {
            return Ok(());
        }
        let wanted = match self.get("target_session_attrs") {
            None | Some("any") => Attributes::Any,
            Some("read-write" | "primary") => Attributes::ReadWrite,
            Some("read-only" | "standby") => Attributes::ReadOnly,
            Some(other) => return Err(wrong("target_session_attrs", other, "write any, read-write or read-only")),
        };
        config.target_session_attrs(wanted);
        Ok(())
    }

    /// Sets the password from the variable, or else from the password file.
    fn fill_in_password(&self, config: &mut Config) {
        if config.get_password().is_some() {
            return;
        }
        if let Some(password) = self.get("password") {
            config.password(password);
        } else if let Some(password) = self.get("passfile").and_then(|file| password_in(Path::new(file), config)) {
            config.password(password);
        }
    }
}

/// The host where neither URL nor environment names one.
const LOCAL: &str = "localhost";

/// Parses a port; the error names the variable that it came from.
fn check_port(port: &str) -> Result<u16> {
    port.parse().map_err(|_| wrong("port", port, "write a number up to 65535"))
}

/// Names the variable of a parameter. Only parameters that hold no secret come here.
fn wrong(name: &str, value: &str, remedy: &str) -> Error {
    let variable = VARIABLES.iter().find(|(known, _)| *known == name).map_or(name, |(_, variable)| variable);
    Error::invalid(format!(
        "`{value}` cannot be the {name} of a PostgreSQL server (from {variable} or a service file); {remedy}"
    ))
}

/// Reads a service from the user's file, else from the system's.
fn read_service(name: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<BTreeMap<String, String>> {
    let own = variable("PGSERVICEFILE").map(PathBuf::from);
    let own = own.or_else(|| variable("HOME").map(|home| Path::new(&home).join(".pg_service.conf")));
    let system = variable("PGSYSCONFDIR").map(|folder| Path::new(&folder).join("pg_service.conf"));
    let files: Vec<PathBuf> = own.into_iter().chain(system).collect();
    let found = files.iter().filter_map(|file| fs::read_to_string(file).ok()).find_map(|text| section(&text, name));
    found.ok_or_else(|| {
        let files: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
        Error::invalid(format!(
            "there is no PostgreSQL service `{name}` in {}; add a section [{name}] there, or set PGSERVICEFILE",
            files.join(" or ")
        ))
    })
}

/// Returns the `name=value` lines of a section `[name]`.
fn section(text: &str, name: &str) -> Option<BTreeMap<String, String>> {
    let mut lines = text.lines().map(str::trim);
    lines.find(|line| line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) == Some(name))?;
    let own = lines.take_while(|line| !line.starts_with('['));
    let pairs = own.filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once('='));
    Some(pairs.map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned())).collect())
}

/// Returns the password that a password file has for a connection. A file that others may use is
/// not read, as libpq has it.
fn password_in(file: &Path, config: &Config) -> Option<String> {
    let mode = fs::metadata(file).ok()?.mode();
    if mode & OF_OTHERS != 0 {
        let file = file.display();
        tracing::warn!("the password file {file} is not used, because others may read it; chmod 600 it");
        return None;
    }
    let text = fs::read_to_string(file).ok()?;
    let host = match config.get_hosts().first()? {
        Host::Tcp(host) => host.clone(),
        Host::Unix(_) => LOCAL.to_owned(),
    };
    let port = config.get_ports().first().copied().unwrap_or(5432).to_string();
    let user = config.get_user().unwrap_or_default();
    let database = config.get_dbname().unwrap_or(user);
    let wanted = [host.as_str(), &port, database, user];
    text.lines().filter(|line| !line.starts_with('#')).map(fields).find_map(|fields| match &fields[..] {
        [matched @ .., password] if matched.len() == wanted.len() => {
            let agrees = matched.iter().zip(wanted).all(|(field, value)| field == "*" || field == value);
            agrees.then(|| password.clone())
        }
        _ => None,
    })
}

/// Splits a line of a password file at its colons. A backslash takes the next character as it is.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        match (character, fields.last_mut()) {
            (':', _) => fields.push(String::new()),
            ('\\', Some(field)) => field.extend(characters.next()),
            (other, Some(field)) => field.push(other),
            (_, None) => {}
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn variables<'a>(set: &'a [(&'a str, &'a str)]) -> impl Fn(&str) -> Option<String> + 'a {
        move |name| set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
    }

    fn filled(url: &str, set: &[(&str, &str)]) -> Config {
        let defaults = Defaults::read(None, &variables(set)).unwrap();
        let mut config: Config = defaults.add_port(url).unwrap().parse().unwrap();
        defaults.fill_in(&mut config).unwrap();
        config
    }

    fn password(config: &Config) -> Option<&str> {
        config.get_password().map(|bytes| std::str::from_utf8(bytes).unwrap())
    }

    #[test]
    fn the_url_counts_before_the_variables() {
        let set = [("PGHOST", "db"), ("PGPORT", "6543"), ("PGUSER", "me"), ("PGPASSWORD", "s"), ("PGDATABASE", "work")];
        let open = filled("postgres://", &set);
        assert_eq!(open.get_hosts(), [Host::Tcp("db".to_owned())]);
        assert_eq!((open.get_ports(), open.get_user(), open.get_dbname()), (&[6543][..], Some("me"), Some("work")));
        assert_eq!(password(&open), Some("s"));
        let named = filled("postgres://you:own@host:1/else", &set);
        assert_eq!(named.get_hosts(), [Host::Tcp("host".to_owned())]);
        assert_eq!((named.get_ports(), named.get_user(), named.get_dbname()), (&[1][..], Some("you"), Some("else")));
        assert_eq!(password(&named), Some("own"));
    }

    #[test]
    fn a_service_counts_before_the_variables() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "[other]\nhost=no\n[work]\n# mine\nhost = db\nport=6543\n").unwrap();
        let set = [
            ("PGSERVICEFILE", file.path().to_str().unwrap()),
            ("PGSERVICE", "work"),
            ("PGHOST", "else"),
            ("PGUSER", "me"),
        ];
        let config = filled("postgres://", &set);
        assert_eq!((config.get_hosts(), config.get_ports()), (&[Host::Tcp("db".to_owned())][..], &[6543][..]));
    }

    #[test]
    fn an_unknown_service_is_refused_with_the_file() {
        let set = [("PGSERVICEFILE", "/nowhere/services"), ("PGUSER", "me")];
        let error = Defaults::read(Some("work".to_owned()), &variables(&set)).unwrap_err().to_string();
        assert!(error.contains("`work`") && error.contains("/nowhere/services"), "{error}");
    }

    #[test]
    fn a_password_file_has_the_password_of_the_first_line_that_agrees() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        writeln!(file, "db:5432:work:you:no\ndb:*:work:me:a\\:b\\\\c\n*:*:*:*:last").unwrap();
        file.as_file().set_permissions(fs::Permissions::from_mode(0o600)).unwrap();
        let set = [("PGPASSFILE", file.path().to_str().unwrap())];
        assert_eq!(password(&filled("postgres://me@db/work", &set)), Some("a:b\\c"));
        assert_eq!(password(&filled("postgres://me@db/else", &set)), Some("last"));
    }

    #[test]
    fn a_password_file_that_others_may_read_is_not_used() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        writeln!(file, "*:*:*:*:secret").unwrap();
        file.as_file().set_permissions(fs::Permissions::from_mode(0o644)).unwrap();
        let set = [("PGPASSFILE", file.path().to_str().unwrap())];
        assert_eq!(password(&filled("postgres://me@db/work", &set)), None);
    }

    #[test]
    fn the_port_of_the_variable_is_for_hosts_without_one() {
        let set = [("PGPORT", "6543"), ("PGUSER", "me")];
        assert_eq!(filled("postgres://one,two:1,[::1]/work", &set).get_ports(), [6543, 1, 6543]);
    }

    #[test]
    fn a_port_that_is_no_number_is_refused_by_its_variable() {
        let defaults = Defaults::read(None, &variables(&[("PGPORT", "many")])).unwrap();
        let error = defaults.add_port("postgres://me@db").unwrap_err().to_string();
        assert!(error.contains("`many`") && error.contains("PGPORT"), "{error}");
    }
}
