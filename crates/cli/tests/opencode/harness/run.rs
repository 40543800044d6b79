//! `opencode run`: one prompt, and what was printed.

use std::{
    fs::{self, File},
    process::Stdio,
};

use serde_json::Value;

use super::world::World;

/// What `opencode run --format json` printed.
#[derive(Debug)]
pub(crate) struct Run {
    lines: Vec<Value>,
}

impl Run {
    pub(super) fn of(world: &World, prompt: &str) -> Self {
        // An argument with spaces would be mangled; standard input is not.
        let (asked, printed) = (world.path("prompt.txt"), world.path("run.log"));
        fs::write(&asked, prompt).expect("written");
        let mut process = world
            .opencode()
            .args(["run", "--format", "json"])
            .args(world.opencode.client_options())
            .stdin(Stdio::from(File::open(&asked).expect("the prompt")))
            .stdout(File::create(&printed).expect("a file"))
            .stderr(File::create(world.path("opencode-run.log")).expect("a log"))
            .spawn()
            .expect("opencode starts");
        let status = world.until("opencode run ends", || {
            process.try_wait().expect("its status")
        });
        let printed = fs::read_to_string(&printed).expect("what was printed");
        assert!(status.success(), "{status}: {printed}");
        let lines = printed
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok());
        Self {
            lines: lines.collect(),
        }
    }

    /// What was said at the end.
    pub(crate) fn answer(&self) -> String {
        let texts = self.lines.iter().filter(|line| line["type"] == "text");
        let mut texts = texts.filter_map(|line| line["part"]["text"].as_str());
        texts.next_back().unwrap_or_default().to_owned()
    }

    /// What a tool answered or failed with, each time.
    pub(crate) fn results(&self, tool: &str) -> Vec<String> {
        let uses = self.lines.iter().filter(|line| line["type"] == "tool_use");
        let uses = uses.filter(|line| line["part"]["tool"] == tool);
        let said = uses.filter_map(|line| {
            let state = &line["part"]["state"];
            state["output"].as_str().or(state["error"].as_str())
        });
        said.map(str::to_owned).collect()
    }
}
