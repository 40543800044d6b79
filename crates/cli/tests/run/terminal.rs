//! A program in a terminal of its own.

use std::{
    ffi::OsStr,
    fs::{self, File, OpenOptions},
    io::{Read, Write},
    os::unix::ffi::OsStrExt,
    os::unix::process::ExitStatusExt,
    path::Path,
    process::{Command, ExitStatus},
    sync::{Arc, Mutex},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use asyncagents_core::lock::lock;

use rustix::{
    process::{Pid, Signal, kill_process},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{Winsize, tcsetwinsize},
};
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(30);

/// A pseudo-terminal with a program in it, which ends when this goes.
pub(crate) struct Terminal {
    keyboard: File,
    /// All bytes that the program and the echo of the keyboard have written.
    written: Arc<Mutex<Vec<u8>>>,
    /// Ends when the program has closed its side and all that it wrote was read.
    reader: JoinHandle<()>,
    /// Where its process writes its ID, and how it has ended.
    notes: TempDir,
    /// Rows and columns.
    size: (u16, u16),
}

impl Terminal {
    pub(crate) fn start(command: &Command) -> Self {
        Self::of_size(command, 40, 120)
    }

    pub(crate) fn of_size(command: &Command, rows: u16, columns: u16) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&master).expect("granted");
        unlockpt(&master).expect("unlocked");
        let size = Winsize {
            ws_row: rows,
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&master, size).expect("a size");
        let name = ptsname(&master, Vec::new()).expect("a name");
        let open = || {
            let name = OsStr::from_bytes(name.as_bytes());
            let opened = OpenOptions::new().read(true).write(true).open(name);
            opened.expect("the program's side")
        };
        let notes = tempfile::tempdir().expect("a folder");
        let mut command = of_nobody(command, notes.path());
        command.stdin(open()).stdout(open()).stderr(open());
        let begun = command.status().expect("a shell");
        assert!(begun.success(), "{begun}");
        // It holds the program's side open, and then nobody would see it closed.
        drop(command);

        let written = Arc::new(Mutex::new(Vec::new()));
        let keyboard = File::from(master);
        let mut screen = keyboard.try_clone().expect("the same terminal");
        let seen = written.clone();
        // It ends with an error when the program has closed its side.
        let reader = std::thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(read @ 1..) = screen.read(&mut piece) {
                let mut seen = lock(&seen);
                seen.extend_from_slice(&piece[..read]);
            }
        });
        Self {
            keyboard,
            written,
            reader,
            notes,
            size: (rows, columns),
        }
    }

    /// Types this, and waits until the terminal has taken it in: until its echo is there.
    pub(crate) fn types(&mut self, keys: &str) {
        let before = self.written().len();
        self.sends(keys);
        let echo = keys.replace('\n', "\r\n");
        self.until(&format!("{keys:?} is echoed"), |written| {
            written[before..].contains(&echo)
        });
    }

    /// Types this, whenever the terminal may take it in.
    pub(crate) fn sends(&mut self, keys: &str) {
        let sent = self.keyboard.write_all(keys.as_bytes());
        sent.expect("the terminal is open");
    }

    /// Types much at once. It goes on as the terminal has room.
    pub(crate) fn pastes(&self, keys: String) {
        let mut keyboard = self.keyboard.try_clone().expect("the same terminal");
        // It fails if the program ends before it has taken all.
        std::thread::spawn(move || keyboard.write_all(keys.as_bytes()));
    }

    /// Waits until this was shown so many times, and returns all that was.
    pub(crate) fn until_shown(&self, words: &str, times: usize) -> String {
        self.until(&format!("{words:?}, {times} times"), |written| {
            written.matches(words).count() >= times
        })
    }

    /// Waits until the program has ended, and returns how, and all that was shown.
    pub(crate) fn until_ended(&mut self) -> (ExitStatus, String) {
        let begun = Instant::now();
        loop {
            if let Some(code) = self.note("ended") {
                let status = ExitStatus::from_raw(code << 8);
                // What it wrote last may not have been read yet.
                while !self.reader.is_finished() && begun.elapsed() < PATIENCE {
                    std::thread::sleep(Duration::from_millis(1));
                }
                return (status, self.written());
            }
            let late = begun.elapsed() > PATIENCE;
            assert!(!late, "it never ends; shown is\n{}", self.newest());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// A number that its process has noted.
    fn note(&self, name: &str) -> Option<i32> {
        let noted = fs::read_to_string(self.notes.path().join(name));
        noted.ok()?.trim().parse().ok()
    }

    /// The lines that a person sees, and could scroll back to.
    pub(crate) fn lines(&self) -> Vec<String> {
        let (rows, columns) = self.size;
        let mut seen = vt100::Parser::new(rows, columns, 10_000);
        seen.process(self.written().as_bytes());
        seen.screen_mut().set_scrollback(usize::MAX);
        let back = seen.screen().scrollback();
        let mut lines = Vec::new();
        for offset in (0..=back).rev() {
            seen.screen_mut().set_scrollback(offset);
            let last = offset == 0;
            let shown = seen.screen().rows(0, columns);
            lines.extend(shown.take(if last { usize::from(rows) } else { 1 }));
        }
        while lines.last().is_some_and(String::is_empty) {
            lines.pop();
        }
        lines
    }

    /// Waits until a person sees this.
    pub(crate) fn until_seen(&self, what: &str, is_so: impl Fn(&[String]) -> bool) -> Vec<String> {
        let begun = Instant::now();
        loop {
            let lines = self.lines();
            if is_so(&lines) {
                return lines;
            }
            let late = begun.elapsed() > PATIENCE;
            assert!(!late, "never: {what}; seen is\n{}", lines.join("\n"));
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub(crate) fn written(&self) -> String {
        String::from_utf8_lossy(&lock(&self.written)).into_owned()
    }

    /// As much as fits on a screen or two.
    fn newest(&self) -> String {
        let written = self.written();
        let lines: Vec<&str> = written.lines().collect();
        lines[lines.len().saturating_sub(60)..].join("\n")
    }

    fn until(&self, what: &str, is_so: impl Fn(&str) -> bool) -> String {
        let begun = Instant::now();
        loop {
            let written = self.written();
            if is_so(&written) {
                return written;
            }
            let late = begun.elapsed() > PATIENCE;
            assert!(!late, "never: {what}; shown is\n{}", self.newest());
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Starts a program, with `setsid` of util-linux, in the terminal on standard input. `$1` is the
/// folder of its notes. What has started the shell is gone before the program begins.
const START: &str = r#"exec 3<&0
(
    while kill -0 $$ 2>/dev/null; do sleep 0.01; done
    sh -c 'echo $$ >"$1/pid"; shift; exec setsid --ctty "$@"' sh "$@" <&3 3<&-
    echo $? >"$1/ended.new"
    mv "$1/ended.new" "$1/ended"
) &"#;

/// The same command, to which the keys for signals are delivered. There is nobody above it, so that
/// it is a person's also where an agent runs the tests.
fn of_nobody(command: &Command, notes: &Path) -> Command {
    let mut leading = Command::new("sh");
    leading.args(["-c", START, "sh"]).arg(notes);
    leading.arg(command.get_program());
    leading.args(command.get_args()).env_clear();
    let variables = command.get_envs();
    leading.envs(variables.filter_map(|(name, value)| Some((name, value?))));
    if let Some(folder) = command.get_current_dir() {
        leading.current_dir(folder);
    }
    if !command.get_envs().any(|(name, _)| name == "TERM") {
        leading.env("TERM", "xterm");
    }
    leading
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let pid = self.note("pid").filter(|_| self.note("ended").is_none());
        if let Some(pid) = pid.and_then(Pid::from_raw) {
            // It may just have ended.
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}
