//! `todo`: the plan of a session, for the model to keep in sight.

use asyncagents_core::agent::ToolSpec;

use crate::arguments::Arguments;

pub(super) const NAME: &str = "todo";
const EXAMPLE: &str = r#"{"items": [{"text": "Write the test", "status": "doing"}]}"#;
const DESCRIPTION: &str = "Keeps your list of steps for work that has several of them. Give the \
    whole list each time; it replaces the former one. Have one step in the state `doing`, and \
    mark it `done` as soon as it is.";
const SCHEMA: &str = r#"{"type":"object","properties":{"items":{"type":"array","items":{"type":"object","properties":{"text":{"type":"string"},"status":{"type":"string","enum":["pending","doing","done"]}},"required":["text","status"]}}},"required":["items"]}"#;

/// A list of steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Todo {
    items: Vec<(Status, String)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Status {
    Pending,
    Doing,
    Done,
}

const STATUSES: [(&str, Status); 3] = [
    ("pending", Status::Pending),
    ("doing", Status::Doing),
    ("done", Status::Done),
];

pub(super) fn spec() -> ToolSpec {
    super::spec(NAME, DESCRIPTION, SCHEMA)
}

impl Todo {
    pub(super) fn parse(input: &str) -> Result<Self, String> {
        let items = Arguments::read(input, EXAMPLE)?.objects("items")?;
        let item = |item: &Arguments| {
            let text = item.filled_text("text")?;
            Ok((item.one_of("status", &STATUSES)?, text))
        };
        let items = items.iter().map(item).collect::<Result<_, String>>()?;
        Ok(Self { items })
    }

    /// The list as check boxes.
    pub(super) fn answer(&self) -> String {
        if self.items.is_empty() {
            return "The list is empty.".to_owned();
        }
        let line = |(status, text): &(Status, String)| {
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            match status {
                Status::Pending => format!("- [ ] {text}"),
                Status::Doing => format!("- [ ] **{text}** (doing)"),
                Status::Done => format!("- [x] {text}"),
            }
        };
        self.items.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}
