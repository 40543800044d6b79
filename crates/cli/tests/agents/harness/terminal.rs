//! An agent in a terminal of its own.

use std::{
    process::{Command, Output},
    time::{Duration, Instant},
};

use super::World;

/// The program in a terminal; it ends when this goes.
pub(crate) struct Terminal<'w> {
    world: &'w World,
    name: String,
}

impl<'w> Terminal<'w> {
    pub(super) fn start(world: &'w World, name: &str, line: &[&str]) -> Self {
        let terminal = Self {
            world,
            name: name.to_owned(),
        };
        let size = ["-x", "120", "-y", "50"];
        terminal.tmux(&[&["new-session", "-d"], &size[..], line].concat());
        terminal
    }

    /// Types a line and sends it off when it is on the screen: what is typed too fast is a paste.
    pub(crate) fn types(&self, line: &str) {
        self.tmux(&["send-keys", "-l", line]);
        let typed = unbroken(line);
        self.until(&format!("the screen shows {line:?}"), |screen| {
            unbroken(screen).contains(&typed)
        });
        self.tmux(&["send-keys", "Enter"]);
    }

    /// Presses a key, as tmux calls it.
    pub(crate) fn presses(&self, key: &str) {
        self.tmux(&["send-keys", key]);
    }

    /// Answers a question by a number from its list, until the screen shows what comes after it. What is
    /// pressed while the list is being drawn may be lost, and what is pressed while it goes is typed: that
    /// is taken back.
    pub(super) fn answers(&self, question: &str, choice: &str, after: &str) {
        self.until_shows(question);
        let typed = format!("› {choice}");
        self.until(&format!("{question:?} is answered"), |before| {
            let is_typed = before.lines().any(|line| line.trim() == typed);
            let key = match before.contains(question) {
                true if before.contains(&format!("› {choice}.")) => Some("Enter"),
                true => Some(choice),
                false => is_typed.then_some("BSpace"),
            };
            if let Some(key) = key {
                self.presses(key);
            } else if before.contains(after) {
                return true;
            }
            let begun = Instant::now();
            while self.screen() == before && begun.elapsed() < Duration::from_secs(5) {
                std::thread::sleep(Duration::from_millis(20));
            }
            false
        });
    }

    /// Waits until the agent has said this, and has ended its turn: what is typed before may go into it.
    pub(crate) fn until_says(&self, words: &str) {
        let (wanted, ended) = (unbroken(words), unbroken(self.world.agent.end_of_turn()));
        self.until(&format!("the agent says {words:?}"), |screen| {
            let screen = unbroken(screen);
            let said = screen.rsplit_once(&wanted);
            said.is_some_and(|(_, after)| after.contains(&ended))
        });
    }

    /// Waits until the screen shows this.
    pub(crate) fn until_shows(&self, words: &str) {
        let wanted = unbroken(words);
        self.until(&format!("the screen shows {words:?}"), |screen| {
            unbroken(screen).contains(&wanted)
        });
    }

    pub(crate) fn screen(&self) -> String {
        let shown = self.run(&["capture-pane", "-p"]);
        String::from_utf8_lossy(&shown.stdout).into_owned()
    }

    /// The screen with what says its colours.
    #[allow(dead_code, reason = "the benchmark makes pictures")]
    pub(crate) fn in_colour(&self) -> String {
        let shown = self.run(&["capture-pane", "-e", "-p"]);
        String::from_utf8_lossy(&shown.stdout).into_owned()
    }

    fn until(&self, what: &str, is_so: impl Fn(&str) -> bool) {
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
    }

    fn tmux(&self, args: &[&str]) {
        let done = self.run(args);
        assert!(done.status.success(), "tmux {args:?}: {done:?}");
    }

    fn run(&self, args: &[&str]) -> Output {
        let mut command: Command = self.world.command("tmux");
        command.arg("-S").arg(self.world.path(&self.name));
        let done = command.args(["-f", "/dev/null"]).args(args).output();
        done.expect("tmux runs")
    }
}

impl Drop for Terminal<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("== the screen\n{}", self.screen());
        }
        self.run(&["kill-server"]);
    }
}

/// A text without its blanks and without the lines around it.
fn unbroken(text: &str) -> String {
    text.chars()
        .filter(|c| !c.is_whitespace() && !matches!(c, '┃' | '│'))
        .collect()
}
