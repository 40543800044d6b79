//! What is kept from the agent: paths with credentials and variables that look like them.

use std::path::{Path, PathBuf};

/// Below the home folder.
const IN_HOME: [&str; 22] = [
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".config/gcloud",
    ".config/gh",
    ".config/asyncagents",
    ".local/share/asyncagents",
    ".local/share/keyrings",
    ".password-store",
    ".docker/config.json",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".git-credentials",
    ".config/git/credentials",
    ".cargo/credentials.toml",
    ".cargo/credentials",
    ".vault-token",
    ".claude/.credentials.json",
    ".codex/auth.json",
];

const IN_SYSTEM: [&str; 4] = [
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
];

/// The paths that usually hold credentials.
pub(crate) fn usual_paths(home: Option<&Path>) -> Vec<PathBuf> {
    let in_home = home
        .into_iter()
        .flat_map(|home| IN_HOME.iter().map(|path| home.join(path)));
    in_home.chain(IN_SYSTEM.iter().map(PathBuf::from)).collect()
}

/// How the last part of a secret's name ends: `API_KEY`, `PGPASSWORD`, `OAUTH2`.
const ENDINGS: [&str; 8] = [
    "KEY",
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "CREDENTIAL",
    "AUTH",
];

/// Names that give away nothing but open a door, and secrets that are not called so.
const NAMES: [&str; 13] = [
    "SSH_AUTH_SOCK",
    "SSH_AGENT_PID",
    "GPG_AGENT_INFO",
    "DOCKER_HOST",
    "CONTAINER_HOST",
    "DBUS_SESSION_BUS_ADDRESS",
    "XAUTHORITY",
    "KRB5CCNAME",
    "MYSQL_PWD",
    "DATABASE_URL",
    "DB_PASS",
    // Files that a shell would run first.
    "BASH_ENV",
    "ENV",
];

/// Whether a variable of this name is kept from commands.
pub(crate) fn is_secret_variable(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let looks_secret = |word: &str| {
        let word = word.trim_end_matches(|c: char| c.is_ascii_digit());
        let word = word.strip_suffix('S').unwrap_or(word);
        ENDINGS.iter().any(|ending| word.ends_with(ending))
    };
    NAMES.contains(&name.as_str())
        || name
            .split(|c: char| !c.is_ascii_alphanumeric())
            .any(looks_secret)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::is_secret_variable;

    #[rstest]
    #[case::key("ANTHROPIC_API_KEY")]
    #[case::key_within("AWS_ACCESS_KEY_ID")]
    #[case::keys("SIGNING_KEYS")]
    #[case::token("GITHUB_TOKEN")]
    #[case::numbered("TOKEN2")]
    #[case::lower_case("npm_config_authToken")]
    #[case::password("PGPASSWORD")]
    #[case::passwd("DB_PASSWD")]
    #[case::credentials("GOOGLE_APPLICATION_CREDENTIALS")]
    #[case::auth("BASIC_AUTH")]
    #[case::secret("CLIENT_SECRET")]
    #[case::agent("SSH_AUTH_SOCK")]
    #[case::docker("DOCKER_HOST")]
    fn is_kept_from_commands(#[case] name: &str) {
        assert!(is_secret_variable(name));
    }

    #[rstest]
    #[case("PATH")]
    #[case("HOME")]
    #[case("GIT_AUTHOR_NAME")]
    #[case("TOKENIZERS_PARALLELISM")]
    #[case("KEYBOARD_LAYOUT")]
    #[case("PWD")]
    fn is_passed_on(#[case] name: &str) {
        assert!(!is_secret_variable(name));
    }
}
