//! Whether OpenCode sees the tools, and if not, why.

use std::{
    env,
    ffi::OsStr,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use anyhow::{Context, anyhow, bail};
use asyncagents_core::{agent::ToolSpec, port::HostError};
use asyncagents_hosts::{opencode::version, plugin};
use tokio::{process::Command, time::timeout};

use super::{
    install::second_copies,
    loader,
    place::{Place, Surroundings, Whose},
    plugin_file::{self, Found},
};
use crate::{
    exit::{Exit, Failure},
    print,
};

/// How long a program may take to say its version. OpenCode needs 1.2 s of an idle processor.
const VERSION_TIMEOUT: Duration = Duration::from_secs(30);

/// Checks all that has to be there, with an OpenCode in this folder, and prints each finding.
pub(super) async fn check(
    around: &Surroundings,
    places: &[Place],
    folder: &Path,
    opencode: Option<&Path>,
    tools: &[ToolSpec],
) -> Result<Exit, Failure> {
    let opencode = find_opencode(opencode)?;
    let unknown = look_at_opencode(&opencode).await?;
    let plugins = look_at_plugins(places, tools).await?;
    if let Some(first) = plugins.first() {
        for remark in second_copies(around, &first.file) {
            print::remark(&format!("{remark}\n"));
        }
    }
    let loaded = loader::load(&opencode, folder).await;
    let loaded = loaded.map_err(Failure::Machine)?;
    let mut missing = 0;
    for tool in tools {
        let is_seen = loaded.tools.contains(&tool.name);
        missing += usize::from(!is_seen);
        let how = if is_seen { "seen" } else { "not seen" };
        print::answer(&format!("tool {}: {how} by OpenCode", tool.name))?;
    }
    let advice = what_to_do(missing, tools.len(), &plugins, loaded.complaint);
    // Tools that would all refuse are of no use.
    match advice.or(unknown) {
        None => {
            print::answer(&format!("All {} tools are seen.", tools.len()))?;
            Ok(Exit::Done)
        }
        Some(advice) => Err(Failure::Machine(anyhow!(advice))),
    }
}

/// A copy of the plugin.
struct Plugin {
    place: Place,
    file: PathBuf,
    /// This version would write the same.
    is_current: bool,
    /// The program it names cannot be used.
    is_broken: bool,
}

/// The program that was named, or the one that a shell would find.
fn find_opencode(named: Option<&Path>) -> Result<PathBuf, Failure> {
    let variable = env::var_os("ASYNCAGENTS_OPENCODE_BIN").filter(|value| !value.is_empty());
    let from_environment = variable.map(PathBuf::from);
    if let Some(program) = named.map(Path::to_owned).or(from_environment) {
        if !is_program(&program) {
            let program = program.display();
            return Err(Failure::Input(anyhow!(
                "{program} is not a program; name OpenCode with --opencode-bin"
            )));
        }
        // A name without a folder would be looked for on the PATH.
        return Ok(std::path::absolute(&program).unwrap_or(program));
    }
    let path = env::var_os("PATH").unwrap_or_default();
    let found = on_path(&path, "opencode");
    found.ok_or_else(|| {
        Failure::Machine(anyhow!(
            "there is no `opencode` on the PATH; install OpenCode, or name it with --opencode-bin"
        ))
    })
}

fn on_path(path: &OsStr, name: &str) -> Option<PathBuf> {
    let programs = env::split_paths(path).map(|folder| folder.join(name));
    let found = programs.into_iter().find(|program| is_program(program))?;
    std::path::absolute(found).ok()
}

fn is_program(path: &Path) -> bool {
    let about = path.metadata();
    about.is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
}

/// Prints which OpenCode it is; returns why it is not supported, if it is not.
async fn look_at_opencode(program: &Path) -> Result<Option<String>, Failure> {
    let version = version_line(program).await.map_err(Failure::Machine)?;
    let unknown = match version::check(version.trim_start_matches('v')) {
        Ok(()) => None,
        Err(HostError::Refused(why)) => Some(why),
        Err(error) => Some(error.to_string()),
    };
    let known = if unknown.is_some() {
        "not supported"
    } else {
        "supported"
    };
    let program = program.display();
    print::answer(&format!("OpenCode: {program}, version {version}: {known}"))?;
    Ok(unknown)
}

/// What a program answers to `--version`.
async fn version_line(program: &Path) -> anyhow::Result<String> {
    let name = program.display();
    let mut command = Command::new(program);
    command.arg("--version").stdin(Stdio::null());
    let output = timeout(VERSION_TIMEOUT, command.kill_on_drop(true).output()).await;
    let output = output.map_err(|_| anyhow!("{name} does not say its version"))?;
    let output = output.with_context(|| format!("{name} cannot be started"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    match text.lines().next().map(str::trim) {
        Some(line) if output.status.success() && !line.is_empty() => {
            Ok(line.chars().filter(print::harmless).take(80).collect())
        }
        _ => bail!(
            "{name} does not say its version: it ended with {}",
            output.status
        ),
    }
}

/// Prints of every copy whether it is as it should be.
async fn look_at_plugins(places: &[Place], tools: &[ToolSpec]) -> Result<Vec<Plugin>, Failure> {
    let mut plugins = Vec::new();
    let mut nothing = true;
    for place in places {
        for file in place.files() {
            match plugin_file::find(&file)? {
                Found::Nothing => {}
                Found::Foreign(what) => {
                    nothing = false;
                    print::answer(&format!("plugin: {} is {what}", file.display()))?;
                }
                Found::Ours(text) => {
                    nothing = false;
                    let place = place.clone();
                    plugins.push(look_at_plugin(place, file, &text, tools).await?);
                }
            }
        }
    }
    if nothing {
        let wanted = places.first().map(Place::file).unwrap_or_default();
        print::answer(&format!("plugin: {} is not there", wanted.display()))?;
    }
    Ok(plugins)
}

async fn look_at_plugin(
    place: Place,
    file: PathBuf,
    text: &str,
    tools: &[ToolSpec],
) -> Result<Plugin, Failure> {
    let program = plugin_file::program_in(text, tools);
    let is_current = program
        .as_deref()
        .is_some_and(|program| plugin::render(program, tools) == text);
    let age = if is_current {
        "up to date"
    } else {
        "of another version, or changed by hand"
    };
    print::answer(&format!("plugin: {}, {age}", file.display()))?;
    let version = match &program {
        Some(program) => Some(version_of(&place, Path::new(program)).await),
        None => None,
    };
    match (&program, &version) {
        (Some(program), Some(Ok(version))) => {
            print::answer(&format!("program: {program}, {version}"))?;
        }
        (_, Some(Err(error))) => print::answer(&format!("program: {error:#}"))?,
        (None, _) | (_, None) => print::answer("program: the plugin does not say which")?,
    }
    Ok(Plugin {
        place,
        file,
        is_current,
        is_broken: matches!(version, Some(Err(_))),
    })
}

/// The version of a plugin's program. One that a project's file names is run only if it is this
/// one: another user may have written the file.
async fn version_of(place: &Place, program: &Path) -> anyhow::Result<String> {
    let this = env::current_exe().and_then(fs::canonicalize).ok();
    let is_this = this.is_some() && this == fs::canonicalize(program).ok();
    if place.whose == Whose::User || is_this {
        return version_line(program).await;
    }
    let name = program.display();
    fs::metadata(program).with_context(|| format!("{name} cannot be started"))?;
    Ok("which is another program than this one, and was not run".to_owned())
}

/// What is left to do, if not all is well.
fn what_to_do(
    missing: usize,
    all: usize,
    plugins: &[Plugin],
    complaint: Option<String>,
) -> Option<String> {
    let broken = plugins.iter().find(|plugin| plugin.is_broken);
    let old = plugins.iter().find(|plugin| !plugin.is_current);
    let why = if let Some(broken) = broken {
        let command = broken.place.command("");
        format!("the program that the plugin names cannot be used; {command} names this one")
    } else if missing == 0 {
        return None;
    } else if plugins.is_empty() {
        "the plugin is not there; `asyncagents setup opencode` installs it".to_owned()
    } else if let Some(switch) = switched_off(plugins) {
        format!("{switch} is set, and keeps it from loading the plugin; unset it")
    } else if let Some(old) = old {
        let command = old.place.command("");
        format!("the plugin is not of this version; {command} updates it")
    } else if let Some(complaint) = complaint {
        format!("it could not load the plugin: {complaint}")
    } else {
        "it has not loaded the plugin and does not say why; look at what `opencode` shows when \
         it starts in this folder"
            .to_owned()
    };
    Some(match missing {
        0 => format!("OpenCode sees the tools, but {why}"),
        _ if missing == all => format!("OpenCode sees none of the tools: {why}"),
        _ => format!("OpenCode does not see {missing} of the {all} tools: {why}"),
    })
}

/// The switch that keeps OpenCode from loading any of these.
fn switched_off(plugins: &[Plugin]) -> Option<&'static str> {
    let is_set = |name: &&str| {
        let value = env::var(name).unwrap_or_default();
        !matches!(value.as_str(), "" | "0" | "false")
    };
    let only_projects = plugins
        .iter()
        .all(|plugin| plugin.place.whose != Whose::User);
    let of_projects = only_projects.then_some("OPENCODE_DISABLE_PROJECT_CONFIG");
    let mut switches = ["OPENCODE_PURE"].into_iter().chain(of_projects);
    switches.find(is_set)
}
