//! Paths that usually hold credentials, or what was typed and read. A line more is all it takes to
//! close another one; what is not listed here is looked for by [`crate::private_files`].

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
};

/// Below the home folder. A folder means everything in it.
const IN_HOME: &[&str] = &[
    // asyncagents itself.
    ".config/asyncagents",
    ".local/share/asyncagents",
    // Other agents and providers of models.
    ".aider.conf.yml",
    ".anthropic",
    ".cache/huggingface/stored_tokens",
    ".cache/huggingface/token",
    ".claude.json",
    ".claude.json.backup",
    ".claude/.credentials.json",
    ".codex/auth.json",
    ".config/anthropic",
    ".config/github-copilot",
    ".config/goose",
    ".config/io.datasette.llm",
    ".config/kaggle",
    ".config/openai",
    ".continue/config.json",
    ".continue/config.yaml",
    ".copilot",
    ".cursor/mcp.json",
    ".gemini/google_accounts.json",
    ".gemini/oauth_creds.json",
    ".huggingface",
    ".kaggle",
    ".local/share/amp",
    ".local/share/opencode/auth.json",
    ".local/share/opencode/mcp-auth.json",
    ".modal.toml",
    ".ollama/id_ed25519",
    ".openai",
    ".qwen/oauth_creds.json",
    // Keys, signatures and encryption.
    ".age",
    ".config/age",
    ".config/sops",
    ".gnupg",
    ".minisign",
    ".pki",
    ".putty",
    ".ssh",
    // Password managers and key rings.
    ".config/1Password",
    ".config/Bitwarden",
    ".config/Bitwarden CLI",
    ".config/KeePass",
    ".config/gopass",
    ".config/keepassxc",
    ".config/lpass",
    ".config/op",
    ".config/rbw",
    ".kde/share/apps/kwallet",
    ".lastpass",
    ".local/share/gopass",
    ".local/share/keyrings",
    ".local/share/kwalletd",
    ".local/share/lpass",
    ".local/share/rbw",
    ".microsoft/usersecrets",
    ".op",
    ".password-store",
    ".vault-token",
    "Library/Keychains",
    // Version control and forges.
    ".config/gh",
    ".config/git/credentials",
    ".config/glab-cli",
    ".config/hub",
    ".config/tea",
    ".git-credentials",
    ".netrc",
    ".subversion/auth",
    // Registries of packages and images.
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".composer/auth.json",
    ".config/composer/auth.json",
    ".config/containers/auth.json",
    ".config/helm/registry",
    ".config/helm/repositories.yaml",
    ".config/pip/pip.conf",
    ".config/pypoetry/auth.toml",
    ".config/uv/credentials",
    ".docker/config.json",
    ".gem/credentials",
    ".gradle/gradle.properties",
    ".hex/hex.config",
    ".ivy2/.credentials",
    ".local/share/uv/credentials",
    ".m2/settings-security.xml",
    ".m2/settings.xml",
    ".npmrc",
    ".pip/pip.conf",
    ".pypirc",
    ".sbt/.credentials",
    // Clouds and services.
    ".aliyun",
    ".aws",
    ".azure",
    ".bluemix",
    ".boto",
    ".cloudflared",
    ".config/.wrangler",
    ".config/configstore/firebase-tools.json",
    ".config/doctl",
    ".config/exoscale",
    ".config/gcloud",
    ".config/hcloud",
    ".config/heroku",
    ".config/linode-cli",
    ".config/netlify",
    ".config/ngrok",
    ".config/planetscale",
    ".config/railway",
    ".config/rclone",
    ".config/scw",
    ".config/snowflake",
    ".config/stripe",
    ".config/supabase",
    ".databricks",
    ".databrickscfg",
    ".fly",
    ".local/share/com.vercel.cli",
    ".local/share/heroku",
    ".netlify",
    ".ngrok2",
    ".oci",
    ".pulumi/credentials.json",
    ".railway",
    ".s3cfg",
    ".snowflake",
    ".snowsql",
    ".supabase",
    ".terraform.d/credentials.tfrc.json",
    ".terraformrc",
    ".vercel",
    ".wrangler",
    // Clusters.
    ".argocd",
    ".config/argocd",
    ".kube",
    ".talos",
    // Databases.
    ".config/pgcli",
    ".local/share/DBeaverData",
    ".my.cnf",
    ".mylogin.cnf",
    ".pg_service.conf",
    ".pgpass",
    // Private networks and remote machines.
    ".cert",
    ".config/FileZilla",
    ".config/filezilla",
    ".config/openvpn",
    ".config/remmina",
    ".config/tailscale",
    ".config/wireguard",
    ".filezilla",
    ".local/share/networkmanagement",
    ".local/share/remmina",
    ".local/share/tailscale",
    ".openvpn",
    ".wireguard",
    // Browsers: where somebody is logged in.
    ".config/BraveSoftware",
    ".config/chromium",
    ".config/google-chrome",
    ".config/google-chrome-beta",
    ".config/google-chrome-unstable",
    ".config/microsoft-edge",
    ".config/microsoft-edge-beta",
    ".config/microsoft-edge-dev",
    ".config/opera",
    ".config/vivaldi",
    ".librewolf",
    ".local/share/epiphany",
    ".local/share/qutebrowser",
    ".mozilla",
    ".waterfox",
    ".zen",
    "Library/Cookies",
    // Mail and messages.
    ".config/Element",
    ".config/Mattermost",
    ".config/Microsoft",
    ".config/Signal",
    ".config/Slack",
    ".config/WhatsApp",
    ".config/aerc",
    ".config/discord",
    ".config/evolution",
    ".config/himalaya",
    ".config/msmtp",
    ".config/neomutt",
    ".config/teams",
    ".fetchmailrc",
    ".icedove",
    ".isyncrc",
    ".local/share/TelegramDesktop",
    ".local/share/evolution",
    ".local/share/geary",
    ".local/share/kmail2",
    ".mbsyncrc",
    ".msmtprc",
    ".mutt",
    ".neomutt",
    ".offlineimaprc",
    ".thunderbird",
    // The same as packages that bring their own home.
    ".var/app",
    "snap/bitwarden",
    "snap/brave",
    "snap/chromium",
    "snap/discord",
    "snap/firefox",
    "snap/opera",
    "snap/signal-desktop",
    "snap/slack",
    "snap/telegram-desktop",
    "snap/thunderbird",
    // Wallets.
    ".aptos",
    ".bitcoin",
    ".brownie/accounts",
    ".config/Exodus",
    ".config/Ledger Live",
    ".config/solana",
    ".dogecoin",
    ".electrum",
    ".ethereum",
    ".foundry/keystores",
    ".litecoin",
    ".monero",
    ".near-credentials",
    ".sui",
    // What was typed.
    ".Rhistory",
    ".ash_history",
    ".bash_history",
    ".config/nushell/history.sqlite3",
    ".config/nushell/history.txt",
    ".dbshell",
    ".gdb_history",
    ".history",
    ".ipython/profile_default/history.sqlite",
    ".irb_history",
    ".julia/logs/repl_history.jl",
    ".ksh_history",
    ".lesshst",
    ".local/share/atuin",
    ".local/share/fish/fish_history",
    ".local/share/mcfly",
    ".local/share/nvim/shada",
    ".local/share/powershell/PSReadLine",
    ".local/state/bash/history",
    ".local/state/nvim/shada",
    ".local/state/python_history",
    ".local/state/zsh/history",
    ".mariadb_history",
    ".mongodb",
    ".mysql_history",
    ".node_repl_history",
    ".php_history",
    ".pry_history",
    ".psql_history",
    ".python_history",
    ".rediscli_history",
    ".sh_history",
    ".sqlite_history",
    ".ts_node_repl_history",
    ".viminfo",
    ".zhistory",
    ".zsh_history",
    ".zsh_sessions",
];

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
        let joined = |path: &PathBuf, below: &&&str| match below.is_empty() {
            true => path.clone(),
            false => path.join(below),
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
