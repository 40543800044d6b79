//! Finds out whether this machine can sandbox commands, by doing it.

use std::{
    io::{self, Read},
    path::Path,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use super::{
    Sandbox,
    order::{Order, Stage},
    report::write_text,
    restrict,
    unrestricted::Unrestricted,
};

/// A helper that takes longer is not one.
const PROBE_TIMEOUT: Duration = Duration::from_secs(10);

/// The exit code of a helper on a machine that has no sandbox.
const LACKING: i32 = 3;

/// What the helper does when asked.
pub(super) fn answer(order: &Order) -> i32 {
    let limits = order.limits.clone().unwrap_or_default();
    let (text, code) = match restrict::restrict(&limits) {
        Ok(what) => (what, 0),
        Err(Unrestricted::Lacking(why)) => (why, LACKING),
        #[cfg(target_os = "linux")]
        Err(Unrestricted::Failed(why)) => (why, 1),
    };
    write_text(io::stdout(), &text);
    code
}

/// Asks the helper to restrict itself. An error is no answer: the helper is broken, or the
/// machine has no memory just now.
pub(crate) fn probe(helper: &Path, order: &Order) -> Result<Sandbox, String> {
    let broken = |error: io::Error| format!("the helper {} failed: {error}", helper.display());
    let mut asked = Command::new(helper)
        .args(order.arguments(Stage::Probe))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(broken)?;
    let until = Instant::now() + PROBE_TIMEOUT;
    let status = loop {
        match asked.try_wait().map_err(broken)? {
            Some(status) => break status,
            None if Instant::now() > until => {
                asked.kill().ok();
                asked.wait().ok();
                return Err(broken(io::ErrorKind::TimedOut.into()));
            }
            None => thread::sleep(Duration::from_millis(1)),
        }
    };
    let mut output = String::new();
    if let Some(mut pipe) = asked.stdout.take() {
        pipe.read_to_string(&mut output).map_err(broken)?;
    }
    match status.code() {
        Some(0) => Ok(Sandbox::Enforced { what: output }),
        Some(LACKING) => Ok(Sandbox::Missing { why: output }),
        _ => Err(broken(io::Error::other(format!("{status} {output}")))),
    }
}
