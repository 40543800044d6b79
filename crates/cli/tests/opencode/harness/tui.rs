//! OpenCode's terminal interface, in a terminal of its own.

use std::process::Command;

use asyncagents_scripted_model::Recorded;
use serde_json::Value;

use super::{
    message::is_notice,
    playbook::using,
    world::{World, header, is_childs},
};

/// The terminal interface; it ends when this goes.
pub(crate) struct Tui<'w> {
    world: &'w World,
}

impl<'w> Tui<'w> {
    pub(super) fn start(world: &'w World) -> Self {
        let tui = Self { world };
        let program = world.opencode().get_program().to_owned();
        let program = program
            .to_str()
            .expect("a path that can be typed")
            .to_owned();
        // Too narrow for the column at the side, so that what is said is not broken up there.
        let size = ["-x", "110", "-y", "50"];
        let options = world.opencode.client_options();
        tui.tmux(&[&["new-session", "-d"], &size[..], &[&program], options].concat());
        tui.until_shows("Ask anything");
        // What is sent off before the model is known opens a dialog instead.
        tui.until_shows("Scripted");
        tui
    }

    /// Types a line.
    pub(crate) fn types(&self, line: &str) {
        self.tmux(&["send-keys", "-l", line]);
        // It is on the screen before it is sent off: what is typed too fast is a paste. It may
        // be broken there.
        let typed = unbroken(line);
        self.until(&format!("the screen shows {line:?}"), |screen| {
            unbroken(screen).contains(&typed)
        });
        self.tmux(&["send-keys", "Enter"]);
    }

    /// Has the session's model use a tool, as the user types it. Returns what the model was
    /// answered, by the tool and by whoever spoke meanwhile.
    pub(crate) fn uses(&self, tool: &str, parameters: &Value) -> String {
        let words = using(tool);
        let before = self.requests().len();
        self.types(&format!("{words} {parameters}"));
        let what = format!("the model knows what {tool} answered");
        self.world.until(&what, || {
            let new = self.requests().into_iter().skip(before);
            let mut new = new.map(|request| request.last());
            // It may be told of a task before it reads what was typed.
            new.find(|last| !last.contains(&words) && !is_notice(last))
        })
    }

    /// The session on the screen, of which there must be one.
    pub(crate) fn session_id(&self) -> String {
        let request = self.requests().pop().expect("a request");
        header(&request, "x-session-id").expect("an ID").to_owned()
    }

    /// The model's requests of the session, but for those that ask for a title.
    fn requests(&self) -> Vec<Recorded> {
        let mut requests = self.world.model.requests();
        requests.retain(|request| !is_childs(request) && !request.tool_names().is_empty());
        requests
    }

    /// Waits until the screen shows this, and returns what it shows then.
    pub(crate) fn until_shows(&self, words: &str) -> String {
        self.until(&format!("the screen shows {words:?}"), |screen| {
            screen.contains(words)
        })
    }

    /// Waits until a toast says this: a box at the right, with a line on either side.
    pub(crate) fn until_toast(&self, words: &str) {
        self.until(&format!("a toast says {words:?}"), |screen| {
            toast(screen).contains(words)
        });
    }

    /// What is on the screen.
    pub(crate) fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    fn until(&self, what: &str, is_so: impl Fn(&str) -> bool) -> String {
        let mut newest = String::new();
        let shown = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            self.world.until(what, || {
                newest = self.screen();
                is_so(&newest).then_some(())
            });
        }));
        if let Err(panic) = shown {
            eprintln!("== the screen\n{newest}");
            std::panic::resume_unwind(panic);
        }
        newest
    }

    fn tmux(&self, args: &[&str]) -> String {
        let mut command = Command::new("tmux");
        self.world.dress(&mut command);
        command.arg("-S").arg(self.world.path("tmux"));
        let done = command.args(["-f", "/dev/null"]).args(args).output();
        let done = done.expect("tmux runs");
        assert!(done.status.success(), "tmux {args:?}: {done:?}");
        String::from_utf8_lossy(&done.stdout).into_owned()
    }
}

impl Drop for Tui<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // It is gone with the world; and there may be nothing to end.
            return;
        }
        self.tmux(&["kill-server"]);
    }
}

/// What is between two lines at the right of the screen.
fn toast(screen: &str) -> String {
    let mut text = String::new();
    for line in screen.lines() {
        let bars: Vec<usize> = line.match_indices('┃').map(|(at, _)| at).collect();
        if let [.., from, to] = bars[..]
            && line[..from].chars().count() > 20
        {
            text.push_str(line[from..to].trim_start_matches('┃').trim());
            text.push(' ');
        }
    }
    text
}

/// A text without its blanks and without the lines around it.
fn unbroken(text: &str) -> String {
    text.chars()
        .filter(|c| !c.is_whitespace() && !matches!(c, '┃' | '│'))
        .collect()
}
