//! OpenCode's terminal interface, in a terminal of its own.

use std::process::Command;

use super::world::World;

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
        tui.tmux(&[&["new-session", "-d"], &size[..], &[&program]].concat());
        tui.until_shows("Ask anything");
        tui
    }

    /// Types a line.
    pub(crate) fn types(&self, line: &str) {
        self.tmux(&["send-keys", "-l", line]);
        // It is on the screen before it is sent off: what is typed too fast is a paste.
        self.until_shows(line);
        self.tmux(&["send-keys", "Enter"]);
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
