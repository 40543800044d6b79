//! Files that decide what others run, or what agents do: changing one is more than changing a file.

/// Parts of paths, wherever they are. What is run when somebody asks for it by name (a Makefile, a
/// build script) is not among them: who runs it means it. These are obeyed by whoever opens the
/// folder, enters it, commits or pushes. Each group is separated by blanks.
const GUARDED: &[&str] = &[
    // Instructions and settings of agents, ours and others'.
    ".agents .aider.conf.yml .amazonq .asyncagents .claude .clinerules .codex .continue \
     .cursor .cursorrules .gemini .github/copilot-instructions.md .goosehints .junie .kiro \
     .mcp.json .opencode .roo .rules .windsurf .windsurfrules AGENT.md AGENTS.md \
     AGENTS.override.md CLAUDE.local.md CLAUDE.md GEMINI.md QWEN.md WARP.md asyncagents.toml \
     opencode.json opencode.jsonc",
    // Hooks of version control, and the settings that name them.
    ".git .githooks .hg .hgrc .husky .lefthook .lefthook.toml .lefthook.yaml .lefthook.yml \
     .overcommit.yml .pre-commit-config.yaml .simple-git-hooks.json lefthook-local.yml \
     lefthook.toml lefthook.yaml lefthook.yml",
    // What a shell runs on entering a folder, and an editor on opening it.
    ".devcontainer .devcontainer.json .dir-locals.el .envrc .exrc .idea .lvimrc .mise \
     .mise.toml .nvim.lua .nvimrc .vscode .zed mise.local.toml mise.toml",
    // What a server runs on a push, with the keys of the project.
    ".buildkite .circleci .drone.yml .forgejo/workflows .gitea/workflows .github/actions \
     .github/workflows .gitlab-ci.yml .gitpod.yml .travis.yml .woodpecker.yml Jenkinsfile \
     azure-pipelines.yml bitbucket-pipelines.yml",
];

/// The outermost guarded part of a path.
pub(super) fn guarded_part(path: &str) -> Option<&'static str> {
    let path = Parts::of(path);
    let all = GUARDED.iter().flat_map(|group| group.split(' '));
    let found = all.filter_map(|guarded| Some((path.position(&Parts::of(guarded))?, guarded)));
    found.min().map(|(_, guarded)| guarded)
}

/// Whether a pattern of paths speaks of a guarded part itself: `.git/*` does of `.git`, `src/*` of
/// nothing.
pub(super) fn speaks_of(pattern: &str, guarded: &str) -> bool {
    let pattern: Vec<&str> = pattern
        .split('/')
        .map(|part| part.trim_matches('*'))
        .collect();
    let pattern = Parts::of(&pattern.join("/"));
    pattern.position(&Parts::of(guarded)).is_some()
}

/// The parts of a path as a file system that ignores case compares them.
struct Parts(Vec<String>);

impl Parts {
    fn of(path: &str) -> Self {
        // Upwards first: some letters have the same capital and not the same small one.
        let folded = |part: &str| part.to_uppercase().to_lowercase();
        Self(path.split('/').map(folded).collect())
    }

    fn position(&self, of: &Self) -> Option<usize> {
        self.0.windows(of.0.len()).position(|parts| parts == of.0)
    }
}
