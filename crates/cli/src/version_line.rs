//! What another program says its version is.

use std::{path::Path, process::Stdio, time::Duration};

use anyhow::{Context, anyhow, bail};
use tokio::{process::Command, time::timeout};

use crate::{make_visible::shown_path, print};

/// How long a program may take to say its version. OpenCode needs 1.2 s of an idle processor.
const VERSION_TIMEOUT: Duration = Duration::from_secs(30);

/// What a program answers to `--version`. It is not started in a project, whose files it might
/// read.
pub(crate) async fn version_line(program: &Path) -> anyhow::Result<String> {
    let name = shown_path(program);
    let mut command = Command::new(program);
    command
        .arg("--version")
        .current_dir("/")
        .stdin(Stdio::null());
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
