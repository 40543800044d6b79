//! Which messages are in a session of Claude Code: it says nothing of that when it is resumed, so
//! its file is looked at. What was sent by its adapter has a UUID of the adapter's; the mark in its
//! text is ours.

use std::{collections::BTreeSet, io, path::Path};

use asyncagents_core::id::PostId;
use memchr::memmem::{self, Finder};
use serde::Deserialize;
use serde_json::Value;

use super::message_id;
use crate::{
    agent::{is_in, mark},
    claude_code::transcript,
    jsonl::newest_line,
};

#[derive(Deserialize)]
struct WireLine {
    #[serde(rename = "type")]
    kind: String,
    uuid: Option<String>,
    /// It is what a sub-agent was told.
    #[serde(rename = "isSidechain", default)]
    is_of_sub_agent: bool,
    message: Option<WireMessage>,
    attachment: Option<WireAttachment>,
}

/// What a session was told in the middle of a turn is not a message of its own.
#[derive(Deserialize)]
struct WireAttachment {
    source_uuid: Option<String>,
    prompt: Option<Value>,
}

#[derive(Deserialize)]
struct WireMessage {
    content: Option<Value>,
}

/// Which of these posts a session has been told; nothing if there is no such session.
pub(super) fn told(
    config: &Path,
    session: &str,
    posts: &[PostId],
) -> io::Result<Option<BTreeSet<PostId>>> {
    let Some(file) = transcript::find(config, session, None)? else {
        return Ok(None);
    };
    let mut found = BTreeSet::new();
    let looked_for = Vec::from_iter(posts.iter().map(|post| {
        let uuids = message_id::all_of_post(post).collect::<Vec<_>>();
        let names = Vec::from_iter(uuids.iter().cloned().chain([mark(post)]));
        (post, uuids, names)
    }));
    newest_line(&file, u64::MAX, |line| {
        let may_have = |name: &String| memmem::find(line, name.as_bytes()).is_some();
        let mut may_be = looked_for
            .iter()
            .filter(|(_, _, names)| names.iter().any(may_have))
            .peekable();
        may_be.peek()?;
        let message = Message::read(line)?;
        let is_it = |(post, uuids, _): &&(&PostId, Vec<String>, _)| {
            uuids.contains(&message.uuid) || message.texts.iter().any(|text| is_in(text, post))
        };
        found.extend(may_be.filter(is_it).map(|(post, ..)| (*post).clone()));
        (found.len() == posts.len()).then_some(())
    })?;
    Ok(Some(found))
}

/// Which of these messages a session has, by their UUIDs.
pub(super) fn has(
    config: &Path,
    session: &str,
    messages: &[String],
) -> io::Result<BTreeSet<String>> {
    match transcript::find(config, session, None)? {
        Some(file) => find(&file, messages),
        None => Ok(BTreeSet::new()),
    }
}

fn find(file: &Path, messages: &[String]) -> io::Result<BTreeSet<String>> {
    let finders: Vec<Finder> = messages.iter().map(Finder::new).collect();
    let mut found = BTreeSet::new();
    newest_line(file, u64::MAX, |line| {
        if finders.iter().any(|finder| finder.find(line).is_some())
            && let Some(message) = Message::read(line)
            && messages.contains(&message.uuid)
        {
            found.insert(message.uuid);
        }
        (found.len() == messages.len()).then_some(())
    })?;
    Ok(found)
}

/// A message that a session was told.
struct Message {
    uuid: String,
    texts: Vec<String>,
}

impl Message {
    fn read(line: &[u8]) -> Option<Self> {
        let line: WireLine = serde_json::from_slice(line).ok()?;
        let (uuid, said) = match line.kind.as_str() {
            "user" if !line.is_of_sub_agent => (line.uuid, line.message?.content),
            "attachment" => {
                let attachment = line.attachment?;
                (attachment.source_uuid, attachment.prompt)
            }
            _ => return None,
        };
        Some(Self {
            uuid: uuid.unwrap_or_default(),
            texts: said.map(texts).unwrap_or_default(),
        })
    }
}

/// What was said, and not what came of tools: that may have anything in it.
fn texts(said: Value) -> Vec<String> {
    match said {
        Value::String(text) => vec![text],
        Value::Array(blocks) => {
            let texts = blocks.iter().filter(|block| block["type"] == "text");
            let texts = texts.filter_map(|block| block["text"].as_str());
            texts.map(str::to_owned).collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::*;

    #[test]
    fn a_message_is_told_when_it_is_in_the_conversation_and_not_when_it_is_only_queued() {
        let config = tempfile::tempdir().expect("a folder");
        let project = config.path().join("projects/-project");
        fs::create_dir_all(&project).expect("folders");
        let posts: Vec<PostId> = ["said", "steered", "queued", "unknown", "again"]
            .map(PostId::from)
            .into();
        let uuid = |post: usize| message_id::of_post(&posts[post], 0);
        let lines = [
            format!(r#"{{"type":"user","uuid":"{}","message":{{}}}}"#, uuid(0)),
            format!(
                r#"{{"type":"attachment","uuid":"{}","attachment":{{"type":"queued_command","source_uuid":"{}"}}}}"#,
                uuid(3),
                uuid(1)
            ),
            format!(
                r#"{{"type":"queue-operation","operation":"enqueue","commandUuid":"{}"}}"#,
                uuid(2)
            ),
            format!(r#"{{"type":"assistant","parentUuid":"{}"}}"#, uuid(3)),
            format!(
                r#"{{"type":"user","uuid":"{}","message":{{}}}}"#,
                message_id::of_post(&posts[4], 1)
            ),
        ];
        fs::write(project.join("one.jsonl"), lines.join("\n")).expect("written");
        let found = told(config.path(), "one", &posts).expect("read");
        let expected = [0, 1, 4].map(|post| posts[post].clone());
        assert_eq!(found, Some(expected.into()));
        assert_eq!(told(config.path(), "two", &posts).expect("read"), None);
        let uuids = [uuid(0), uuid(2)];
        let found = has(config.path(), "one", &uuids).expect("read");
        assert_eq!(found, [uuid(0)].into());
    }
    /// A session that was begun over the adapter goes on without it: what it was told there is not
    /// said again.
    #[test]
    fn what_the_adapter_has_sent_is_told_by_the_mark_in_its_text() {
        let config = tempfile::tempdir().expect("a folder");
        let project = config.path().join("projects/-project");
        fs::create_dir_all(&project).expect("folders");
        let posts: Vec<PostId> = ["said", "steered", "read", "delegated", "said1"]
            .map(PostId::from)
            .into();
        let says = |post: usize| format!("Do it\n\n{}", mark(&posts[post]));
        let text = |post| json!([{"type": "text", "text": says(post)}]);
        let result = json!([{"type": "tool_result", "content": says(2)}]);
        let lines = [
            json!({"type": "user", "uuid": "theirs-1", "message": {"content": text(0)}}),
            json!({"type": "attachment", "uuid": "theirs-2",
                "attachment": {"type": "queued_command", "prompt": text(1)}}),
            json!({"type": "user", "uuid": "theirs-3", "message": {"content": result}}),
            json!({"type": "user", "uuid": "theirs-4", "isSidechain": true,
                "message": {"content": says(3)}}),
        ];
        let lines = lines.map(|line| line.to_string());
        fs::write(project.join("one.jsonl"), lines.join("\n")).expect("written");
        let found = told(config.path(), "one", &posts).expect("read");
        assert_eq!(found, Some([0, 1].map(|post| posts[post].clone()).into()));
    }
}
