//! Which variables commands get. In the sandbox those that are known to be of use and those that the
//! user lists; elsewhere all. Neither there nor here what looks like a secret.

use std::sync::LazyLock;

use crate::lists;

/// The variable that a worker is started with for its own sake, and its value: the C library shares one
/// heap between all threads, and keeps nothing of it for each. Many threads that work now and then keep
/// several times what is in use otherwise, and more with every task. No command gets it.
pub const WORKERS_MEMORY: (&str, &str) = (
    "GLIBC_TUNABLES",
    "glibc.malloc.arena_max=1:glibc.malloc.tcache_count=0",
);

/// What commands in the sandbox get: names, and prefixes that end with `*`.
static USUAL: LazyLock<Vec<&str>> =
    LazyLock::new(|| lists::entries(include_str!("lists/usual_variables.txt")));

/// Whether a command in the sandbox gets a variable. What the user lists by its whole name is
/// passed on, whatever it looks like; all else must be on a list and not look like a secret.
pub(crate) fn passes_sandbox(name: &str, value: &str, listed: &[String]) -> bool {
    let fits = |pattern: &str| match pattern.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => name == pattern,
    };
    let on_a_list = USUAL
        .iter()
        .copied()
        .chain(listed.iter().map(String::as_str))
        .any(fits);
    listed.iter().any(|listed| listed == name) || (on_a_list && !is_secret(name, value))
}

/// How a word in a secret's name ends: `API_KEY`, `PGPASSWORD`, `OAUTH2`.
const WORD_ENDINGS: [&str; 11] = [
    "COOKIE",
    "CREDS",
    "JWT",
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

/// How an address says a password behind its `?`.
const PARAMETERS: [&str; 7] = [
    "password",
    "passwd",
    "pwd",
    "token",
    "secret",
    "api_key",
    "access_token",
];

/// Whether a variable looks like a secret.
pub(crate) fn is_secret(name: &str, value: &str) -> bool {
    is_secret_name(name) || has_password_in_url(value) || has_password_in_words(value)
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

/// As in `postgres://user:password@host` and `postgres://host/base?password=…`.
fn has_password_in_url(value: &str) -> bool {
    value.split("://").skip(1).any(|rest| {
        let rest = rest.split_whitespace().next().unwrap_or_default();
        let host = &rest[..rest.find('/').unwrap_or(rest.len())];
        let user = host.rsplit_once('@').map_or("", |(user, _)| user);
        let password = user.split_once(':').map_or("", |(_, password)| password);
        !password.is_empty() || has_password_parameter(rest)
    })
}

/// As in `user:password@proxy:3128`, `https://token@host` and `-Dpassword=…`.
fn has_password_in_words(value: &str) -> bool {
    value.split_whitespace().any(|word| {
        let is_path = word.starts_with(['/', '.', '~']);
        let user = word.split_once('@').map_or("", |(user, _)| user);
        let is_login = user.contains(':') || user.to_ascii_lowercase().contains("%3a");
        let word = word.to_ascii_lowercase();
        let names_one = |secret: &&str| {
            let behind = word.split_once(*secret).map_or("", |(_, behind)| behind);
            behind.starts_with('=') && behind.len() > 1
        };
        (is_login && !is_path) || SECRET_OPTIONS.iter().any(names_one)
    }) || value.to_ascii_lowercase().contains("-setcookie")
}

/// How options name what they are given: `-Djavax.net.ssl.keyStorePassword=…`, `--token=…`.
const SECRET_OPTIONS: [&str; 4] = ["password", "passwd", "token", "secret"];

fn has_password_parameter(address: &str) -> bool {
    let parameters = address.split(['?', '&', ';', '#']).skip(1);
    let mut named = parameters.filter_map(|parameter| parameter.split_once('='));
    let is_known = |name: &str| {
        PARAMETERS
            .iter()
            .any(|known| name.eq_ignore_ascii_case(known))
    };
    named.any(|(name, value)| is_known(name) && !value.is_empty())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::{has_password_in_url, is_secret_name, passes_sandbox};

    /// Names that no rule about names knows: only a list keeps them.
    #[rstest]
    #[case("STRIPE_SK", "sk_live_hush")]
    #[case("SLACK_HOOK", "https://hooks.example.com/services/hush")]
    #[case("JWT", "hush")]
    #[case("CI_JOB_JWT", "hush")]
    #[case("CREDS", "hush")]
    #[case("AWS_CREDS", "hush")]
    #[case("BEARER", "hush")]
    #[case("COOKIE", "hush")]
    #[case("SESSION_COOKIE", "hush")]
    #[case("GH_PAT_X", "hush")]
    #[case("AZURE_SAS", "sv=2024&sig=hush")]
    #[case("DB_URL", "postgres://host/base?password=hush")]
    #[case("DB_URI", "mysql://me:hush@host/base")]
    #[case("http_proxy", "me:hush@proxy:3128")]
    #[case("HTTPS_PROXY", "http://me%3Ahush@proxy")]
    #[case("JAVA_TOOL_OPTIONS", "-Xmx1g -Djavax.net.ssl.keyStorePassword=hush")]
    #[case("PYTEST_ADDOPTS", "--token=hush")]
    #[case("ERL_AFLAGS", "-setcookie hush")]
    #[case("RUSTUP_COOKIE", "hush")]
    #[case("INSTA_JWT", "hush")]
    #[case("REDIS", "redis://:hush@host")]
    #[case("LOGIN", "me:hush")]
    #[case("SIGNING_CERT", "hush")]
    #[case("PRIVATE_PEM", "hush")]
    #[case("KUBECONFIG", "/home/me/cluster")]
    #[case("MNEMONIC", "twelve words")]
    #[case("SEED_PHRASE", "twelve words")]
    #[case("OTP", "123456")]
    #[case("LICENSE", "hush")]
    #[case("SENTRY", "https://hush@sentry.example.com/1")]
    #[case("TWILIO_SID", "hush")]
    #[case("ALGOLIA", "hush")]
    #[case("NPM_CONFIG__AUTH", "hush")]
    #[case("GIT_CONFIG_VALUE_0", "Authorization: hush")]
    #[case("NIX_CONFIG", "access-tokens = hush")]
    #[case("ASYNCAGENTS_PROVIDERS_X_KEY_COMMAND", "pass show hush")]
    #[case("AWS_PROFILE", "production")]
    // On the list, and still a secret.
    #[case("HTTPS_PROXY", "http://me:hush@proxy:3128")]
    #[case("RUSTUP_TOKEN", "hush")]
    #[case("CARGO_NET_PASSWORD", "hush")]
    fn is_kept_from_the_sandbox(#[case] name: &str, #[case] value: &str) {
        assert!(!passes_sandbox(name, value, &[]));
    }

    #[rstest]
    fn is_passed_into_the_sandbox(
        #[values(
            "PATH",
            "HOME",
            "LANG",
            "LC_ALL",
            "TZ",
            "CI",
            "CARGO_HOME",
            "CARGO_TARGET_DIR",
            "RUSTUP_TOOLCHAIN",
            "RUSTFLAGS",
            "RUST_BACKTRACE",
            "GOPATH",
            "JAVA_HOME",
            "NVM_DIR",
            "NODE_ENV",
            "PYENV_ROOT",
            "VIRTUAL_ENV",
            "PYTHONPATH",
            "CC",
            "CXXFLAGS",
            "PKG_CONFIG_PATH",
            "LD_LIBRARY_PATH",
            "GIT_AUTHOR_NAME"
        )]
        name: &str,
    ) {
        assert!(passes_sandbox(name, "a value", &[]));
    }

    #[rstest]
    #[case::exactly("JWT", "JWT", "hush", true)]
    #[case::exactly_though_it_looks_secret("MY_API_KEY", "MY_API_KEY", "hush", true)]
    #[case::by_its_beginning("MY_*", "MY_STAGE", "test", true)]
    #[case::a_beginning_opens_no_secret("MY_*", "MY_API_KEY", "hush", false)]
    #[case::nor_an_address_with_a_password("DB_*", "DB_URL", "a://b/c?x=1&password=hush", false)]
    #[case::everything("*", "SLACK_HOOK", "x", true)]
    #[case::another("MY_*", "YOUR_STAGE", "test", false)]
    fn the_user_can_list_more(
        #[case] listed: &str,
        #[case] name: &str,
        #[case] value: &str,
        #[case] passes: bool,
    ) {
        let listed = [listed.to_owned()];
        assert_eq!(passes_sandbox(name, value, &listed), passes);
    }

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
    fn looks_like_a_secret(#[case] name: &str) {
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
    fn does_not_look_like_one(#[case] name: &str) {
        assert!(!is_secret_name(name));
    }

    #[rstest]
    #[case::password("postgres://me:hush@host/base", true)]
    #[case::no_user("redis://:hush@host", true)]
    #[case::second("http://plain a://b:c@d", true)]
    #[case::parameter("postgres://host/base?user=me&password=hush", true)]
    #[case::token("https://host/hook?token=hush", true)]
    #[case::empty_parameter("postgres://host/base?password=", false)]
    #[case::other_parameter("https://host/a?page=2", false)]
    #[case::user_only("ssh://git@host:22/a", false)]
    #[case::port("http://localhost:8080/a@b", false)]
    #[case::no_address("user:password@host", false)]
    fn a_password_in_an_address(#[case] value: &str, #[case] secret: bool) {
        assert_eq!(has_password_in_url(value), secret);
    }
}
