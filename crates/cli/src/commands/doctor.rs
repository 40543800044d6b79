//! `asyncagents doctor`: checks everything, one line each, and says how to mend it. It changes
//! nothing and starts no agent.

use std::{env, fs, path::Path};

use asyncagents_core::tool_set;
use asyncagents_models::{KeyState, ProviderOverview};
use asyncagents_store::{format_of, newest_format};
use asyncagents_tools::{Sandbox, SandboxMode, Toolbox};
use asyncagents_views::{DoctorView, FindingState, FindingView};

use super::{CommandContext, setup};
use crate::{
    config::Config,
    exit::{Exit, Failure},
    hosts,
    live_processes::{LiveProcess, Role, with_open},
    make_visible::make_visible,
    own_file::can_write,
    print, trust,
};

/// Check that everything is in order, and say how to mend what is not.
///
/// Looks at asyncagents, each OpenCode on the PATH, the plugin's files, bridges and workers that
/// run, the database, keys of models (whether they are there, never what they are) and the
/// sandbox: one line each. Nothing is changed, and no agent is started.
///
/// Exit code 0 when all is well, 1 when something needs mending.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  asyncagents doctor
  asyncagents doctor --json | jq -r '.checks[] | select(.mend).mend'")]
pub(super) struct DoctorArgs {
    /// Print one line of JSON.
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(context: &CommandContext, args: &DoctorArgs) -> Result<Exit, Failure> {
    let config = &context.config;
    let mut checks = vec![this_program()];
    let tools = tool_set::specs_with_skill(&config.prefix, None);
    checks.extend(setup::findings(&tools).await?);
    let processes = with_open(&config.db);
    checks.extend(of_role(&processes, Role::Bridge));
    checks.push(database(&config.db));
    checks.extend(of_role(&processes, Role::Worker));
    checks.push(models(config));
    checks.push(sandbox(config));
    let well = checks
        .iter()
        .all(|check| check.state != FindingState::Problem);
    let view = DoctorView { checks, well };
    print::json_or(args.json, &view, || as_text(&view))?;
    Ok(if well { Exit::Done } else { Exit::Failed })
}

/// A finding about one thing.
pub(super) fn finding(about: &'static str, state: FindingState, text: String) -> FindingView {
    FindingView {
        about,
        mend: None,
        state,
        text,
    }
}

/// Something that needs mending, and how.
pub(super) fn problem(about: &'static str, text: String, mend: String) -> FindingView {
    FindingView {
        mend: Some(mend),
        ..finding(about, FindingState::Problem, text)
    }
}

fn as_text(view: &DoctorView) -> String {
    let line = |check: &FindingView| {
        let state = match check.state {
            FindingState::Ok => "ok     ",
            FindingState::Note => "note   ",
            FindingState::Problem => "PROBLEM",
        };
        let mend = check.mend.as_ref().map(|mend| format!("; {mend}"));
        let mend = mend.unwrap_or_default();
        // A file's name could have lines in it that look like ours.
        let text = make_visible(&format!("{}{mend}", check.text));
        format!("{state}  {:<11}  {text}", check.about)
    };
    let lines: Vec<String> = view.checks.iter().map(line).collect();
    lines.join("\n")
}

fn this_program() -> FindingView {
    let program = env::current_exe().unwrap_or_default();
    let text = format!("{}, {}", env!("CARGO_PKG_VERSION"), program.display());
    finding("asyncagents", FindingState::Ok, text)
}

/// The workers or bridges that run. One of another program file may be of another version.
fn of_role(processes: &[LiveProcess], role: Role) -> Vec<FindingView> {
    let (about, again, none) = match role {
        Role::Bridge => (
            "bridge",
            "its OpenCode starts another",
            "none runs; an OpenCode with the plugin starts one",
        ),
        Role::Worker | Role::Other => (
            "worker",
            "the next command starts another",
            "none runs; one is started when there is work",
        ),
    };
    let here = processes.iter().filter(|process| process.role == role);
    let said = here.map(
        |LiveProcess {
             pid,
             is_this_program,
             ..
         }| {
            if *is_this_program {
                return finding(
                    about,
                    FindingState::Ok,
                    format!("process {pid}, this program"),
                );
            }
            let text =
                format!("process {pid} runs another program file than this, maybe an older one");
            FindingView {
                mend: Some(format!("`kill {pid}` ends it, and {again}")),
                ..finding(about, FindingState::Note, text)
            }
        },
    );
    let said: Vec<FindingView> = said.collect();
    if said.is_empty() {
        return vec![finding(about, FindingState::Ok, none.to_owned())];
    }
    said
}

/// Whether the database can be used, without changing it.
fn database(path: &Path) -> FindingView {
    let about = "database";
    let name = path.display();
    let Ok(file) = fs::metadata(path) else {
        let text = format!("{name} is not there yet; it is made when there is a task");
        return finding(about, FindingState::Ok, text);
    };
    if file.is_dir() {
        let mend = "choose a file with --db, or move it away".to_owned();
        return problem(about, format!("{name} is a folder"), mend);
    }
    if let Err(error) = trust::check_file(path) {
        return refused(about, &format!("{error:#}"));
    }
    let (format, newest) = match format_of(path) {
        Ok(format) => (format, newest_format()),
        Err(error) => {
            let mend = "choose another file with --db, or bring back a copy".to_owned();
            return problem(about, error.to_string(), mend);
        }
    };
    let kilobytes = file.len().div_ceil(1024);
    let text = format!("{name}, format {format}, {kilobytes} KiB");
    if format > newest {
        let text = format!("{text}, which a newer version made; this one knows {newest}");
        return problem(about, text, "update asyncagents".to_owned());
    }
    let writable = can_write(path);
    if format < newest && writable {
        let text = format!("{text}; the next command brings it to format {newest}");
        return finding(about, FindingState::Note, text);
    }
    match trust::look(path) {
        Ok(None) if writable => finding(about, FindingState::Ok, format!("{text}, yours")),
        Ok(None) => FindingView {
            mend: Some("make it writable to work with it".to_owned()),
            ..finding(
                about,
                FindingState::Note,
                format!("{text}, yours; it cannot be written, and is only looked at"),
            )
        },
        Ok(Some(why)) => problem(about, format!("{text}: it {why}"), why.hint(path)),
        Err(failure) => refused(about, &failure.to_string()),
    }
}

/// A file that a command would refuse, in its words: what is wrong and, after a semicolon, what to
/// do.
fn refused(about: &'static str, why: &str) -> FindingView {
    let (text, mend) = why
        .split_once("; ")
        .unwrap_or((why, "choose another file with --db"));
    problem(about, text.to_owned(), mend.to_owned())
}

/// Which providers have a key. Nothing of a key is shown.
fn models(config: &Config) -> FindingView {
    let about = "models";
    let models = match hosts::models(&config.agent_config) {
        Ok(models) => models,
        Err(error) => {
            let mend = "`asyncagents config` shows the settings".to_owned();
            return problem(about, format!("{error:#}"), mend);
        }
    };
    let providers = models.overview();
    let (mut there, mut missing) = (Vec::new(), Vec::new());
    for ProviderOverview { name, key, .. } in &providers {
        match key {
            // A program on this machine, which may or may not run.
            KeyState::NotNeeded | KeyState::Variable { needed: false, .. } => {}
            KeyState::Variable {
                name,
                is_set: false,
                ..
            } => missing.push(name.as_str()),
            KeyState::Variable { .. } | KeyState::Command | KeyState::Given => {
                there.push(name.as_str());
            }
        }
    }
    let missing = match missing.as_slice() {
        [] => String::new(),
        names => format!("; not set: {}", names.join(", ")),
    };
    if there.is_empty() {
        let text = format!("no key for any provider{missing}; OpenCode needs none here");
        return finding(about, FindingState::Note, text);
    }
    let there = there.join(", ");
    let text = format!("can be asked, as far as keys go: {there}{missing}");
    finding(about, FindingState::Ok, text)
}

/// Whether commands of the built-in agent run in a sandbox.
fn sandbox(config: &Config) -> FindingView {
    let about = "sandbox";
    let settings = asyncagents_tools::Settings {
        workspace: env::current_dir().unwrap_or_else(|_| "/".into()),
        helper: hosts::helper().unwrap_or_default(),
        ..config.agent_config.tools.clone()
    };
    let is_required = settings.sandbox == SandboxMode::Required;
    match Toolbox::new(settings).map(|toolbox| toolbox.sandbox()) {
        Ok(Sandbox::Enforced { what }) => {
            let what = what.split(';').next().unwrap_or_default().to_owned();
            finding(about, FindingState::Ok, what)
        }
        Ok(Sandbox::Off) => {
            let text = "switched off by `sandbox.mode`; commands run as you".to_owned();
            finding(about, FindingState::Note, text)
        }
        Ok(Sandbox::Missing { why }) if is_required => problem(
            about,
            format!("{why}, and `sandbox.mode` requires one: no command is run"),
            "set `sandbox.mode` to `auto`".to_owned(),
        ),
        Ok(Sandbox::Missing { why }) => {
            let text = format!("{why}; commands run as you, after the same questions");
            finding(about, FindingState::Note, text)
        }
        Err(error) => finding(about, FindingState::Note, format!("not known: {error}")),
    }
}
