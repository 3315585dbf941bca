//! The table of the settings that `onward.toml` may have.

use clap::{Arg, Command};

/// The unit of a flag without a value.
const SWITCH: &str = "true or false";

/// A setting of `onward.toml`, which is a flag of the command line as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Setting {
    /// The name in the file, such as `serve.listen`. The part before the dot is the command with
    /// the flag.
    pub(crate) key: &'static str,
    /// The unit or the form of the value.
    pub(crate) unit: &'static str,
    /// The values that are accepted.
    pub(crate) range: &'static str,
    /// True if SIGHUP takes a new value over.
    pub(crate) reloads: bool,
}

const fn setting(key: &'static str, unit: &'static str, range: &'static str) -> Setting {
    Setting { key, unit, range, reloads: false }
}

impl Setting {
    #[cfg(feature = "serve")]
    const fn reloads(mut self) -> Self {
        self.reloads = true;
        self
    }

    /// Returns true if the setting is a flag without a value.
    pub(crate) fn is_switch(&self) -> bool {
        self.unit == SWITCH
    }

    /// Returns the id of the flag.
    pub(crate) fn id(&self) -> String {
        self.flag().replace('-', "_")
    }

    /// Returns the name of the flag, without its dashes.
    pub(crate) fn flag(&self) -> &'static str {
        self.key.rsplit_once('.').map_or(self.key, |(_, flag)| flag)
    }

    /// Returns the command with the flag; `None` for a flag of every command.
    pub(crate) fn command(&self) -> Option<&'static str> {
        self.key.split_once('.').map(|(command, _)| command)
    }

    /// Returns the definition of the flag.
    pub(crate) fn argument<'c>(&self, commands: &'c Command) -> Option<&'c Arg> {
        let command = match self.command() {
            Some(name) => commands.find_subcommand(name)?,
            None => commands,
        };
        let id = self.id();
        command.get_arguments().find(|argument| argument.get_id().as_str() == id)
    }
}

/// All settings.
pub(crate) const SETTINGS: &[Setting] = &[
    setting("store", "a file or a URL", "any"),
    setting("durability", "level", "full, normal"),
    #[cfg(feature = "serve")]
    setting("serve.listen", "address and port", "beyond loopback with TLS or proxies, and sign-in"),
    #[cfg(feature = "serve")]
    setting("serve.host", "host names", "any"),
    #[cfg(feature = "serve")]
    setting("serve.base-path", "path", "/segments of letters, digits, - _ . ~"),
    #[cfg(feature = "serve")]
    setting("serve.behind-proxy", "networks", "addresses or address/bits, bits above 0"),
    #[cfg(feature = "serve")]
    setting("serve.private-webhooks", SWITCH, "true, false"),
    #[cfg(feature = "serve")]
    setting("serve.tls-cert", "file, PEM", "with tls-key; its content is read again").reloads(),
    #[cfg(feature = "serve")]
    setting("serve.tls-key", "file, PEM", "with tls-cert; its content is read again").reloads(),
    #[cfg(feature = "serve")]
    setting("serve.mcp-writes", SWITCH, "true, false"),
    #[cfg(feature = "serve")]
    setting("serve.issuer", "URL", "https, or http on this machine"),
    #[cfg(feature = "serve")]
    setting("serve.issuer-keys", "URL", "https, or http on this machine"),
    #[cfg(feature = "serve")]
    setting("serve.issuer-algorithm", "names", "RS256, ES256, EdDSA"),
    #[cfg(feature = "serve")]
    setting("serve.audience", "names", "at most 100"),
    #[cfg(feature = "serve")]
    setting("serve.roles-claim", "name of a claim", "any"),
    #[cfg(feature = "serve")]
    setting("serve.claim-role", "VALUE=ROLE", "at most 100; viewer, operator, developer, admin"),
    #[cfg(feature = "serve")]
    setting("serve.oidc-client", "id", "with issuer"),
    #[cfg(feature = "serve")]
    setting("serve.oidc-secret-file", "file", "with oidc-client"),
    #[cfg(feature = "serve")]
    setting("serve.oidc-scope", "names", "any"),
    #[cfg(feature = "serve")]
    setting("serve.oidc-name", "text", "any"),
    #[cfg(feature = "serve")]
    setting("serve.stop-within", "duration", "0s to 1h"),
    #[cfg(feature = "serve")]
    setting("serve.log", "filter", "error, warn, info, debug, trace, or target=level").reloads(),
    #[cfg(feature = "serve")]
    setting("serve.connections", "connections", "1 to 16384").reloads(),
    #[cfg(feature = "serve")]
    setting("serve.connections-per-address", "connections", "1 to 1024").reloads(),
    #[cfg(feature = "serve")]
    setting("serve.streams", "streams", "0 to 10000").reloads(),
    #[cfg(feature = "serve")]
    setting("serve.request-time", "duration", "1s to 1h").reloads(),
];

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::arguments::Arguments;

    #[test]
    fn every_setting_is_a_flag_with_a_variable() {
        let commands = Arguments::command();
        for setting in SETTINGS {
            let argument = setting.argument(&commands).unwrap_or_else(|| panic!("{} is no flag", setting.key));
            assert_eq!(argument.get_long(), Some(setting.flag()));
            let variable = argument.get_env().and_then(|name| name.to_str()).map(str::to_owned);
            let expected = format!("ONWARD_{}", setting.flag().replace('-', "_").to_uppercase());
            assert_eq!(variable, Some(expected), "{}", setting.key);
        }
    }

    #[cfg(feature = "serve")]
    #[test]
    fn every_flag_of_the_server_is_a_setting() {
        let commands = Arguments::command();
        let serve = commands.find_subcommand("serve").expect("it is a command");
        for argument in serve.get_arguments().filter(|argument| !argument.is_global_set()) {
            let id = argument.get_id().as_str();
            assert!(
                ["check", "demo"].contains(&id)
                    || SETTINGS.iter().any(|it| it.command() == Some("serve") && it.id() == id),
                "{id}"
            );
        }
    }

    #[cfg(feature = "serve")]
    #[test]
    fn the_ends_of_the_ranges_are_accepted_and_no_more() {
        let cases = [
            ("connections", ["1", "16384"], ["0", "16385"]),
            ("connections-per-address", ["1", "1024"], ["0", "1025"]),
            ("streams", ["0", "10000"], ["-1", "10001"]),
            ("request-time", ["1s", "1h"], ["999ms", "3601s"]),
            ("stop-within", ["0s", "1h"], ["-1s", "3601s"]),
        ];
        for (flag, accepted, refused) in cases {
            let range = SETTINGS.iter().find(|it| it.flag() == flag).expect("it is a setting").range;
            assert_eq!(range.split(" to ").collect::<Vec<_>>(), accepted, "{flag}");
            let parse = |value: &str| {
                let flag = format!("--{flag}={value}");
                Arguments::command().try_get_matches_from(["onward", "serve", &flag])
            };
            assert!(accepted.iter().all(|value| parse(value).is_ok()), "{flag}");
            assert!(refused.iter().all(|value| parse(value).is_err()), "{flag}");
        }
    }
}
