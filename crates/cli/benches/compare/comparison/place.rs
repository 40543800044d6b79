//! A home and a project of an agent's own.

use std::{
    fmt::Write as _,
    fs, io,
    path::{Path, PathBuf},
};

/// The file that is read again and again, of 200 lines.
pub(crate) const SAMPLE: &str = "sample.rs";

/// Files of this repository, to be read: their name in the project, and their text.
pub(crate) const REAL_FILES: [(&str, &str); 2] = [
    (
        "agent.rs",
        include_str!("../../../../engine/benches/agent.rs"),
    ),
    ("README.md", include_str!("../../../../../README.md")),
];

/// Where one agent lives and works.
pub(crate) struct Place {
    folder: PathBuf,
}

impl Place {
    pub(crate) fn new(folder: PathBuf) -> io::Result<Self> {
        let place = Self { folder };
        fs::create_dir_all(place.home())?;
        fs::create_dir_all(place.project())?;
        fs::write(place.project().join(SAMPLE), sample())?;
        for (name, text) in REAL_FILES {
            fs::write(place.project().join(name), text)?;
        }
        Ok(place)
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.folder.join("home")
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.folder.join("project")
    }

    pub(crate) fn file(&self, name: &str) -> String {
        self.project().join(name).to_string_lossy().into_owned()
    }

    /// Writes a file of the home, with the folders it needs.
    pub(crate) fn configure(&self, path: &str, text: &str) -> io::Result<()> {
        let path = self.home().join(path);
        fs::create_dir_all(path.parent().unwrap_or(Path::new("/")))?;
        fs::write(path, text)
    }

    /// Where what it prints is kept until the next run.
    pub(crate) fn log(&self) -> PathBuf {
        self.folder.join("log")
    }
}

/// 200 lines of code that nobody has seen before, the same in every run.
pub(crate) fn sample() -> String {
    let mut text = String::new();
    for number in 0..40 {
        // Writing into a string cannot fail.
        let _ = writeln!(
            text,
            "/// Adds {number} to what the reader has counted so far.\n\
             pub fn add_{number}(counter: &mut Counter) -> Result<u64, Overflow> {{\n\
             \x20   counter.total = counter.total.checked_add({number}).ok_or(Overflow)?;\n\
             \x20   Ok(counter.total)\n\
             }}"
        );
    }
    text
}
