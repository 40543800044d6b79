//! What is kept from the agent: paths with credentials and variables that look like them.

use std::path::{Path, PathBuf};

/// Below the home folder.
const IN_HOME: [&str; 35] = [
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
    ".local/share/opencode/auth.json",
    ".pgpass",
    ".my.cnf",
    ".config/containers/auth.json",
    ".config/rclone",
    ".terraform.d/credentials.tfrc.json",
    ".m2/settings.xml",
    ".cache/huggingface/token",
    // What was typed, and where somebody is logged in.
    ".bash_history",
    ".zsh_history",
    ".mozilla",
    ".config/google-chrome",
    ".config/chromium",
];

const IN_SYSTEM: [&str; 6] = [
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/run/secrets",
    "/var/run/secrets",
];

/// The paths that usually hold credentials.
pub(crate) fn usual_paths(home: Option<&Path>) -> Vec<PathBuf> {
    let in_home = home
        .into_iter()
        .flat_map(|home| IN_HOME.iter().map(|path| home.join(path)));
    in_home.chain(IN_SYSTEM.iter().map(PathBuf::from)).collect()
}

/// How a word in a secret's name ends: `API_KEY`, `PGPASSWORD`, `OAUTH2`.
const WORD_ENDINGS: [&str; 8] = [
    "KEY",
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "CREDENTIAL",
    "AUTH",
];

/// How the whole name ends, with `_` before it: `DB_PASS`, but not `BASH_COMPAT`.
const NAME_ENDINGS: [&str; 7] = [
    "PASS",
    "PWD",
    "_PAT",
    "DSN",
    "CONNECTION_STRING",
    "WEBHOOK",
    "WEBHOOK_URL",
];

/// Names that look secret and are not.
const HARMLESS: [&str; 2] = ["PWD", "OLDPWD"];

/// Names that give away nothing but open a door, and secrets that are not called so.
const NAMES: [&str; 11] = [
    "SSH_AUTH_SOCK",
    "SSH_AGENT_PID",
    "GPG_AGENT_INFO",
    "DOCKER_HOST",
    "CONTAINER_HOST",
    "DBUS_SESSION_BUS_ADDRESS",
    "XAUTHORITY",
    "KRB5CCNAME",
    "DATABASE_URL",
    // Files that a shell would run first.
    "BASH_ENV",
    "ENV",
];

/// Whether a variable is kept from commands.
pub(crate) fn is_secret_variable(name: &str, value: &str) -> bool {
    is_secret_name(name) || has_password_in_url(value)
}

fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    if HARMLESS.contains(&name.as_str()) {
        return false;
    }
    let without_number = |word: &str| word.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    let looks_secret = |word: &str| {
        let word = &word[..without_number(word)];
        let word = word.strip_suffix('S').unwrap_or(word);
        WORD_ENDINGS.iter().any(|ending| word.ends_with(ending))
    };
    let whole = format!("_{}", &name[..without_number(&name)]);
    NAMES.contains(&name.as_str())
        || NAME_ENDINGS.iter().any(|ending| whole.ends_with(ending))
        || name
            .split(|c: char| !c.is_ascii_alphanumeric())
            .any(looks_secret)
}

/// As in `postgres://user:password@host`.
fn has_password_in_url(value: &str) -> bool {
    value.split("://").skip(1).any(|rest| {
        let end = rest.find(|c: char| c == '/' || c.is_whitespace());
        let host = &rest[..end.unwrap_or(rest.len())];
        let user = host.rsplit_once('@').map_or("", |(user, _)| user);
        user.split_once(':')
            .is_some_and(|(_, password)| !password.is_empty())
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::{has_password_in_url, is_secret_name};

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
    #[case::pass("SMTP_PASS")]
    #[case::pass_in_a_word("MYSQLPASS")]
    #[case::pwd("MYSQL_PWD")]
    #[case::personal_access_token("AZURE_PAT")]
    #[case::nothing_but_that("PAT")]
    #[case::data_source("SENTRY_DSN")]
    #[case::connection("AZURE_STORAGE_CONNECTION_STRING")]
    #[case::webhook("SLACK_WEBHOOK")]
    #[case::webhook_address("SLACK_WEBHOOK_URL")]
    fn is_kept_from_commands(#[case] name: &str) {
        assert!(is_secret_name(name));
    }

    #[rstest]
    #[case("PATH")]
    #[case("HOME")]
    #[case("GIT_AUTHOR_NAME")]
    #[case("TOKENIZERS_PARALLELISM")]
    #[case("KEYBOARD_LAYOUT")]
    #[case("PWD")]
    #[case("OLDPWD")]
    #[case("BASH_COMPAT")]
    fn is_passed_on(#[case] name: &str) {
        assert!(!is_secret_name(name));
    }

    #[rstest]
    #[case::password("postgres://me:hush@host/base", true)]
    #[case::no_user("redis://:hush@host", true)]
    #[case::second("http://plain a://b:c@d", true)]
    #[case::user_only("ssh://git@host:22/a", false)]
    #[case::port("http://localhost:8080/a@b", false)]
    #[case::no_address("user:password@host", false)]
    fn a_password_in_an_address(#[case] value: &str, #[case] secret: bool) {
        assert_eq!(has_password_in_url(value), secret);
    }
}
