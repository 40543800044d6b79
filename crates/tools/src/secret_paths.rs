//! Paths that usually hold credentials, or what was typed and read. What is not listed is looked for
//! by [`crate::private_files`].

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
    sync::LazyLock,
};

use crate::lists;

/// Below the home folder. A folder means everything in it.
static IN_HOME: LazyLock<Vec<&str>> =
    LazyLock::new(|| lists::entries(include_str!("lists/secret_paths.txt")));

const IN_SYSTEM: &[&str] = &[
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/run/secrets",
    "/var/run/secrets",
];

/// The paths that usually hold credentials.
pub(crate) fn usual(home: Option<&Path>) -> Vec<PathBuf> {
    let in_home = home
        .into_iter()
        .flat_map(|home| IN_HOME.iter().map(|path| home.join(path)));
    in_home.chain(IN_SYSTEM.iter().map(PathBuf::from)).collect()
}

/// Variables that say where credentials are: the file or folder itself, or what is below it.
const NAMED: &[(&str, &[&str])] = &[
    ("AWS_CONFIG_FILE", &[""]),
    ("AWS_SHARED_CREDENTIALS_FILE", &[""]),
    ("AZURE_CONFIG_DIR", &[""]),
    ("CARGO_HOME", &["credentials.toml", "credentials"]),
    ("CLAUDE_CONFIG_DIR", &[".credentials.json", ".claude.json"]),
    ("CLOUDSDK_CONFIG", &[""]),
    ("CODEX_HOME", &["auth.json"]),
    ("DOCKER_CONFIG", &["config.json"]),
    ("GH_CONFIG_DIR", &[""]),
    ("GNUPGHOME", &[""]),
    ("GOOGLE_APPLICATION_CREDENTIALS", &[""]),
    ("GRADLE_USER_HOME", &["gradle.properties"]),
    ("HISTFILE", &[""]),
    ("KUBECONFIG", &[""]),
    ("NETRC", &[""]),
    ("NPM_CONFIG_USERCONFIG", &[""]),
    ("PASSWORD_STORE_DIR", &[""]),
    ("PGPASSFILE", &[""]),
    ("VAULT_TOKEN_PATH", &[""]),
];

/// Folders that may be elsewhere, and where they usually are below the home folder.
const MOVED: &[(&str, &str)] = &[
    ("XDG_CONFIG_HOME", ".config/"),
    ("XDG_DATA_HOME", ".local/share/"),
    ("XDG_STATE_HOME", ".local/state/"),
];

/// The paths that hold credentials because the user's variables say so.
pub fn named_by_variables(variable: impl Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty());
    let named = NAMED.iter().flat_map(|(name, below)| {
        let value = set(name).unwrap_or_default();
        let paths: Vec<PathBuf> = env::split_paths(&value).collect();
        let below = below.iter();
        let joined = |path: &PathBuf, below: &&&str| {
            if below.is_empty() {
                path.clone()
            } else {
                path.join(below)
            }
        };
        below
            .flat_map(|below| paths.iter().map(move |path| joined(path, &below)))
            .collect::<Vec<_>>()
    });
    let moved = MOVED.iter().flat_map(|(name, usual)| {
        let folder = set(name).map(PathBuf::from);
        let below = IN_HOME
            .iter()
            .filter_map(move |path| path.strip_prefix(usual));
        folder.into_iter().flat_map(move |folder| {
            let below = below.clone();
            below.map(move |path| folder.join(path))
        })
    });
    // `HISTFILE=/dev/null` closes nothing.
    let is_file = |path: &PathBuf| {
        let system = ["/dev", "/proc", "/sys"];
        path.is_absolute() && !system.iter().any(|system| path.starts_with(system))
    };
    named.chain(moved).filter(is_file).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use rstest::rstest;

    use super::{named_by_variables, usual};

    #[rstest]
    #[case::agents(&[".claude.json", ".gemini/oauth_creds.json", ".config/github-copilot/hosts.json"])]
    #[case::keys(&[".ssh/id_ed25519", ".config/sops/age/keys.txt", ".password-store/a.gpg"])]
    #[case::forges(&[".config/gh/hosts.yml", ".config/glab-cli/config.yml", ".netrc"])]
    #[case::packages(&[".gem/credentials", ".gradle/gradle.properties", ".config/composer/auth.json"])]
    #[case::clouds(&[".aws/credentials", ".config/doctl/config.yaml", ".fly/config.yml", ".oci/config"])]
    #[case::histories(&[".local/share/fish/fish_history", ".python_history", ".psql_history", ".mysql_history"])]
    #[case::browsers(&[".config/BraveSoftware/Brave-Browser/Default/Cookies", ".config/microsoft-edge/x"])]
    #[case::mail(&[".thunderbird/x.default/logins.json", ".config/Slack/Cookies", ".config/Signal/config.json"])]
    fn is_closed(#[case] paths: &[&str]) {
        let home = Path::new("/home/me");
        let secret = usual(Some(home));
        for path in paths {
            let path = home.join(path);
            assert!(secret.iter().any(|s| path.starts_with(s)), "{path:?}");
        }
    }

    #[test]
    fn what_variables_name_is_closed() {
        let variables = [
            ("CARGO_HOME", "/data/cargo"),
            ("KUBECONFIG", "/data/kube/a:/data/kube/b"),
            ("NETRC", "/data/netrc"),
            ("HISTFILE", "/dev/null"),
            ("GNUPGHOME", "relative"),
            ("XDG_CONFIG_HOME", "/data/config"),
            ("XDG_DATA_HOME", "/data/share"),
        ];
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| value.into())
        };
        let secret = named_by_variables(variable);
        let is_closed = |path: &str| secret.iter().any(|s| Path::new(path).starts_with(s));
        for path in [
            "/data/cargo/credentials.toml",
            "/data/kube/a",
            "/data/kube/b",
            "/data/netrc",
            "/data/config/gh/hosts.yml",
            "/data/share/keyrings/login.keyring",
        ] {
            assert!(is_closed(path), "{path}");
        }
        for path in [
            "/data/cargo/registry",
            "/dev/null",
            "/data/config/nvim",
            "relative",
        ] {
            assert!(!is_closed(path), "{path}");
        }
        assert!(named_by_variables(|_| None).is_empty());
    }

    /// What builds need is not among them.
    #[rstest]
    fn is_open(
        #[values(
            ".cargo/config.toml",
            ".cargo/registry",
            ".rustup",
            ".npm",
            ".gradle/caches",
            ".m2/repository",
            ".gitconfig",
            ".bashrc",
            ".pyenv",
            ".nvm"
        )]
        path: &str,
    ) {
        let home = Path::new("/home/me");
        let path = home.join(path);
        let secret = usual(Some(home));
        assert!(!secret.iter().any(|s| path.starts_with(s) || *s == path));
    }
}
