//! Which variables commands get. In the sandbox those that are known to be of use and those that the
//! user lists; elsewhere all. Neither there nor here what looks like a secret.

/// What commands in the sandbox get: names, and beginnings with a `*` behind them.
const USUAL: &[&str] = &[
    // Who and where.
    "HOME",
    "HOSTNAME",
    "LOGNAME",
    "OLDPWD",
    "PATH",
    "PWD",
    "SHELL",
    "SHLVL",
    "TMPDIR",
    "TZ",
    "USER",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_DIRS",
    "XDG_CONFIG_HOME",
    "XDG_DATA_DIRS",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    // Language and terminal.
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "COLORTERM",
    "COLUMNS",
    "EDITOR",
    "FORCE_COLOR",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "LESS",
    "LINES",
    "LS_COLORS",
    "MANPATH",
    "NO_COLOR",
    "PAGER",
    "TERM",
    "TERMINFO",
    "TERMINFO_DIRS",
    "VISUAL",
    // How programs are built and found.
    "AR",
    "AS",
    "CC",
    "CFLAGS",
    "CMAKE_*",
    "COMPILER_PATH",
    "CPATH",
    "CPP",
    "CPPFLAGS",
    "CPLUS_INCLUDE_PATH",
    "CXX",
    "CXXFLAGS",
    "C_INCLUDE_PATH",
    "DEBUG",
    "DESTDIR",
    "FC",
    "FFLAGS",
    "LD",
    "LDFLAGS",
    "LD_LIBRARY_PATH",
    "DYLD_LIBRARY_PATH",
    "LIBCLANG_PATH",
    "LIBRARY_PATH",
    "LIBS",
    "MAKE",
    "MAKEFLAGS",
    "NINJA_STATUS",
    "NM",
    "OBJCOPY",
    "PKG_CONFIG",
    "PKG_CONFIG_*",
    "PREFIX",
    "PROTOC",
    "RANLIB",
    "SOURCE_DATE_EPOCH",
    "STRIP",
    "VERBOSE",
    // Where tests run, and how.
    "CI",
    "GITHUB_ACTIONS",
    "GITLAB_CI",
    "PYTEST_ADDOPTS",
    // Rust.
    "CARGO",
    "CARGO_BUILD_*",
    "CARGO_HOME",
    "CARGO_INCREMENTAL",
    "CARGO_INSTALL_ROOT",
    "CARGO_NET_*",
    "CARGO_PROFILE_*",
    "CARGO_TARGET_*",
    "CARGO_TERM_*",
    "CARGO_UNSTABLE_*",
    "INSTA_*",
    "PROPTEST_*",
    "RUSTC",
    "RUSTC_*",
    "RUSTDOC",
    "RUSTDOCFLAGS",
    "RUSTFLAGS",
    "RUSTUP_*",
    "RUST_BACKTRACE",
    "RUST_LIB_BACKTRACE",
    "RUST_LOG",
    "RUST_MIN_STACK",
    "RUST_TEST_*",
    "SCCACHE_DIR",
    // Go.
    "CGO_*",
    "GO111MODULE",
    "GOARCH",
    "GOARM",
    "GOBIN",
    "GOCACHE",
    "GODEBUG",
    "GOEXPERIMENT",
    "GOFLAGS",
    "GOMAXPROCS",
    "GOMODCACHE",
    "GONOSUMDB",
    "GOOS",
    "GOPATH",
    "GOPRIVATE",
    "GOPROXY",
    "GOROOT",
    "GOSUMDB",
    "GOTMPDIR",
    "GOTOOLCHAIN",
    "GOWORK",
    // Java and its relatives.
    "ANDROID_HOME",
    "ANDROID_NDK_HOME",
    "ANDROID_SDK_ROOT",
    "ANT_HOME",
    "CLASSPATH",
    "GRADLE_HOME",
    "GRADLE_OPTS",
    "GRADLE_USER_HOME",
    "GROOVY_HOME",
    "JAVA_HOME",
    "JAVA_OPTS",
    "JAVA_TOOL_OPTIONS",
    "JDK_HOME",
    "JDK_JAVA_OPTIONS",
    "KOTLIN_HOME",
    "M2_HOME",
    "MAVEN_HOME",
    "MAVEN_OPTS",
    "SBT_OPTS",
    "SDKMAN_DIR",
    // JavaScript.
    "BUN_INSTALL",
    "COREPACK_HOME",
    "DENO_DIR",
    "DENO_INSTALL",
    "FNM_DIR",
    "FNM_MULTISHELL_PATH",
    "NODE_ENV",
    "NODE_OPTIONS",
    "NODE_PATH",
    "NPM_CONFIG_CACHE",
    "NPM_CONFIG_PREFIX",
    "NVM_BIN",
    "NVM_DIR",
    "NVM_INC",
    "PLAYWRIGHT_BROWSERS_PATH",
    "PNPM_HOME",
    "VOLTA_HOME",
    "YARN_CACHE_FOLDER",
    // Python.
    "CONDA_DEFAULT_ENV",
    "CONDA_EXE",
    "CONDA_PREFIX",
    "CONDA_PYTHON_EXE",
    "CONDA_SHLVL",
    "MYPYPATH",
    "PIPENV_VENV_IN_PROJECT",
    "PIP_CACHE_DIR",
    "POETRY_CACHE_DIR",
    "POETRY_HOME",
    "POETRY_VIRTUALENVS_*",
    "PYENV_ROOT",
    "PYENV_SHELL",
    "PYENV_VERSION",
    "PYTHONBREAKPOINT",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONHASHSEED",
    "PYTHONHOME",
    "PYTHONIOENCODING",
    "PYTHONPATH",
    "PYTHONUNBUFFERED",
    "PYTHONUTF8",
    "PYTHONWARNINGS",
    "TOKENIZERS_PARALLELISM",
    "UV_CACHE_DIR",
    "UV_PROJECT_ENVIRONMENT",
    "UV_PYTHON",
    "UV_PYTHON_INSTALL_DIR",
    "UV_TOOL_DIR",
    "VIRTUAL_ENV",
    "VIRTUAL_ENV_PROMPT",
    "WORKON_HOME",
    // Others.
    "ASDF_DATA_DIR",
    "ASDF_DIR",
    "CABAL_DIR",
    "COMPOSER_HOME",
    "CUDA_HOME",
    "CUDA_PATH",
    "CUDA_VISIBLE_DEVICES",
    "DOTNET_CLI_HOME",
    "DOTNET_ROOT",
    "ERL_AFLAGS",
    "GEM_HOME",
    "GEM_PATH",
    "GHCUP_INSTALL_BASE_PREFIX",
    "HOMEBREW_CELLAR",
    "HOMEBREW_PREFIX",
    "HOMEBREW_REPOSITORY",
    "IN_NIX_SHELL",
    "JULIA_DEPOT_PATH",
    "JULIA_PROJECT",
    "LUA_CPATH",
    "LUA_PATH",
    "MISE_DATA_DIR",
    "MIX_ENV",
    "MIX_HOME",
    "NIX_BINTOOLS*",
    "NIX_BUILD_CORES",
    "NIX_CC*",
    "NIX_CFLAGS*",
    "NIX_LDFLAGS*",
    "NIX_PATH",
    "NIX_PROFILES",
    "NIX_SSL_CERT_FILE",
    "NIX_STORE",
    "OMP_NUM_THREADS",
    "OPAMROOT",
    "OPAMSWITCH",
    "OPAM_SWITCH_PREFIX",
    "PERL5LIB",
    "PERL_MB_OPT",
    "PERL_MM_OPT",
    "PUB_CACHE",
    "QT_QPA_PLATFORM",
    "RACK_ENV",
    "RAILS_ENV",
    "RBENV_ROOT",
    "RBENV_VERSION",
    "RUBYLIB",
    "RUBYOPT",
    "R_HOME",
    "R_LIBS_USER",
    "STACK_ROOT",
    // Version control.
    "EMAIL",
    "GIT_AUTHOR_*",
    "GIT_COMMITTER_*",
    "GIT_PAGER",
    "GIT_SSL_CAINFO",
    "GIT_TERMINAL_PROMPT",
    // For commands that may use the network.
    "ALL_PROXY",
    "CURL_CA_BUNDLE",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NODE_EXTRA_CA_CERTS",
    "NO_PROXY",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "all_proxy",
    "http_proxy",
    "https_proxy",
    "no_proxy",
];

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
