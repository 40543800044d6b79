//! Which other agents are known, and by which program each is driven.

use super::Package;

/// An agent, and the program that speaks the Agent Client Protocol for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AgentProgram {
    /// What a user types.
    pub(crate) name: &'static str,
    /// Its name in sentences.
    pub(crate) shown: &'static str,
    /// What is looked for on the PATH.
    pub(crate) program: &'static str,
    /// What makes it speak the protocol.
    pub(crate) arguments: &'static [&'static str],
    /// The agent's own program, if an adapter speaks for it.
    pub(crate) own: Option<&'static str>,
    /// Whether that can be driven where there is no adapter.
    pub(crate) own_is_enough: bool,
    /// What can be installed for the user.
    pub(crate) package: Option<Package>,
}

/// The files of a package, and its version as its package.json names it.
macro_rules! package {
    ($name:literal, $program:literal, $version:literal, $megabytes:literal) => {
        Some(Package {
            name: $name,
            program: $program,
            version: $version,
            megabytes: $megabytes,
            json: include_str!(concat!("packages/", $name, "/package.json")),
            lock: include_str!(concat!("packages/", $name, "/package-lock.json")),
        })
    };
}

impl AgentProgram {
    pub(crate) const ALL: &[Self] = &[
        Self {
            name: "claude",
            shown: "Claude Code",
            program: "claude-agent-acp",
            arguments: &[],
            own: Some("claude"),
            own_is_enough: true,
            package: package!("claude", "claude-agent-acp", "0.99.1", 360),
        },
        Self {
            name: "codex",
            shown: "Codex",
            program: "codex-acp",
            arguments: &[],
            own: Some("codex"),
            own_is_enough: false,
            package: package!("codex", "codex-acp", "2.6.0", 460),
        },
        Self {
            name: "gemini",
            shown: "Gemini CLI",
            program: "gemini",
            arguments: &["--acp"],
            own: None,
            own_is_enough: false,
            package: package!("gemini", "gemini", "0.61.0", 100),
        },
        Self {
            name: "opencode",
            shown: "OpenCode",
            program: "opencode",
            arguments: &["acp"],
            own: None,
            own_is_enough: false,
            package: None,
        },
        Self {
            name: "goose",
            shown: "goose",
            program: "goose",
            arguments: &["acp"],
            own: None,
            own_is_enough: false,
            package: None,
        },
    ];

    /// The one that a user calls so.
    pub(crate) fn named(name: &str) -> Option<&'static Self> {
        Self::ALL.iter().find(|agent| agent.name == name)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::AgentProgram;

    #[test]
    fn what_is_said_to_be_installed_is_what_the_package_names() {
        for agent in AgentProgram::ALL {
            let Some(package) = agent.package else {
                continue;
            };
            assert_eq!(package.name, agent.name);
            assert_eq!(package.program, agent.program);
            let json: Value = serde_json::from_str(package.json).unwrap();
            let versions = json["dependencies"].as_object().unwrap().values();
            assert_eq!(versions.collect::<Vec<_>>(), [package.version]);
        }
    }

    /// npm checks what it downloads against these sums.
    #[test]
    fn every_package_that_is_downloaded_is_pinned_by_its_content() {
        for package in AgentProgram::ALL.iter().filter_map(|agent| agent.package) {
            let lock: Value = serde_json::from_str(package.lock).unwrap();
            let packages = lock["packages"].as_object().unwrap();
            assert!(packages.len() > 1, "{}", package.name);
            for (path, about) in packages.iter().filter(|(path, _)| !path.is_empty()) {
                let sum = about["integrity"].as_str().unwrap_or_default();
                assert!(sum.starts_with("sha512-"), "{}: {path}", package.name);
                assert!(about.get("resolved").is_none(), "{}: {path}", package.name);
            }
        }
    }
}
