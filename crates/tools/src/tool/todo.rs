//! `todo`: the plan of a session, for the model to keep in sight.

use asyncagents_core::{arguments::Arguments, shorten::one_line};

use super::{Call, Tool, Work};

pub(super) const TOOL: Tool = Tool {
    name: "todo",
    description: "Keeps your list of steps, for work with several. Give the whole list each \
    time. One step is `doing`; mark it `done` as soon as it is.",
    schema: r#"{"type":"object","properties":{"items":{"type":"array","items":{"type":"object","properties":{"text":{"type":"string"},"status":{"type":"string","enum":["pending","doing","done"]}},"required":["text","status"]}}},"required":["items"]}"#,
    example: r#"{"items": [{"text": "Write the test", "status": "doing"}]}"#,
    read,
};

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

fn read(arguments: &Arguments) -> Result<Call, String> {
    let items = arguments.objects("items")?;
    let item = |item: &Arguments| {
        let text = item.filled_text("text")?;
        Ok((item.one_of("status", &STATUSES)?, text))
    };
    let items = items.iter().map(item).collect::<Result<Vec<_>, String>>()?;
    Ok(Work::Answer(check_boxes(&items)).into())
}

/// The list as check boxes.
fn check_boxes(items: &[(Status, String)]) -> String {
    if items.is_empty() {
        return "The list is empty.".to_owned();
    }
    let line = |(status, text): &(Status, String)| {
        let text = one_line(text);
        match status {
            Status::Pending => format!("- [ ] {text}"),
            Status::Doing => format!("- [ ] **{text}** (doing)"),
            Status::Done => format!("- [x] {text}"),
        }
    };
    items.iter().map(line).collect::<Vec<_>>().join("\n")
}
