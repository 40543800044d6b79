//! What tools and other agents may do in a folder: what the user says, and what is kept from them.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use asyncagents_models::Models;
use asyncagents_tools::{Settings, secret_paths_named_by};

use super::HostContext;
use crate::{
    config::{Config, config_folder},
    folders::{beside, private_files, skill_dirs},
    launch_secrets,
    seal::key_file,
};

/// The settings of the tools in a folder.
pub(super) fn tool_settings(
    context: &HostContext,
    workspace: &Path,
    config: &Config,
    models: &Models,
) -> anyhow::Result<Settings> {
    let mut settings = Settings {
        workspace: workspace.to_owned(),
        helper: helper()?,
        secret_variables: models.secret_variables(),
        secret_paths: secret_paths(context),
        private_before: private_files(),
        ..config.agent_config.tools.clone()
    };
    // The files of a skill are for those who use it.
    let skills = skill_dirs(workspace, &config.skills);
    settings.readable.extend(skills.folders());
    Ok(settings)
}

/// The database with all conversations, the user's configuration, and the key.
fn secret_paths(context: &HostContext) -> Vec<PathBuf> {
    // SQLite's, and our own: what is in them decides what runs.
    let db = [
        "",
        "-wal",
        "-shm",
        "-journal",
        ".worker.lock",
        ".worker2.lock",
        ".worker.log",
        ".opencode.log",
        ".mcp.log",
        ".acp.log",
        // Conversations of scripted hosts, of earlier versions.
        ".sessions",
    ];
    let db = db.map(|end| beside(&context.config.db, end));
    let ours = db
        .into_iter()
        .chain(key_file())
        .chain(launch_secrets::folder())
        .chain(private_files());
    let named = secret_paths_named_by(|name| env::var_os(name));
    ours.chain(configuration(context)).chain(named).collect()
}

/// The user's own configuration folder, and what is linked there from elsewhere. It is made if
/// it is missing: only what is there can be kept from commands.
fn configuration(context: &HostContext) -> Vec<PathBuf> {
    let Some(folder) = config_folder() else {
        return Vec::new();
    };
    if !context.options.bare
        && let Err(error) = fs::create_dir_all(&folder)
    {
        tracing::debug!(%error, folder = %folder.display(), "cannot be made");
    }
    let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
    let links = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()));
    let targets = links.filter_map(|link| fs::canonicalize(link.path()).ok());
    let targets: Vec<PathBuf> = targets.collect();
    [vec![folder], targets].concat()
}

/// This program, as it was started: a file of its name may have become another since, by an
/// update, or by a command in the workspace.
pub(crate) fn helper() -> std::io::Result<PathBuf> {
    if cfg!(target_os = "linux") {
        Ok(PathBuf::from("/proc/self/exe"))
    } else {
        env::current_exe()
    }
}
