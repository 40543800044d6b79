//! Our names in OpenCode 2, which takes those that it is given. So whether something was sent
//! before can be asked for by its name.

use asyncagents_core::id::{PostId, SessionId, TaskId};

/// What the names of all sessions begin with.
const SESSION: &str = "ses";
/// What the names of the sessions that we make begin with. The plugin knows them by it.
pub const OUR_SESSIONS: &str = "ses_asyncagents_";
/// What the names of the messages that we send begin with.
pub const OUR_MESSAGES: &str = "msg_asyncagents_";

/// The session in which a task is worked on, known before it is there.
pub fn child_session(task: &TaskId) -> SessionId {
    format!("{OUR_SESSIONS}{}", plain(task.as_str())).into()
}

/// The session in which one question is asked beside a task's own.
pub(super) fn side_session(question: &PostId) -> SessionId {
    format!("{OUR_SESSIONS}{}", plain(question.as_str())).into()
}

/// The message that something of ours is in a session.
pub fn message(post: &PostId) -> String {
    format!("{OUR_MESSAGES}{}", plain(post.as_str()))
}

/// Whether a name is that of a message of ours.
pub(super) fn is_ours(message: &str) -> bool {
    message.starts_with(OUR_MESSAGES)
}

/// Whether a session can be one of OpenCode's. Only such names are put into a path: another's
/// could lead somewhere else.
pub fn is_session(id: &SessionId) -> bool {
    id.as_str().strip_prefix(SESSION).is_some_and(is_harmless)
}

/// Whether a name of OpenCode's, of a message or a question, can be put into a path.
pub(super) fn is_harmless(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    !name.is_empty() && name.len() <= 200 && name.bytes().all(fits)
}

/// A name of ours without its kind and its punctuation. Task IDs are hexadecimal, and what follows
/// them in a post's name is words and numbers, so two names stay two.
fn plain(name: &str) -> String {
    let name = name.strip_prefix(TaskId::KIND).unwrap_or(name);
    let plain = |char: char| {
        if char.is_ascii_alphanumeric() {
            char
        } else {
            '_'
        }
    };
    name.chars().map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_has_one_session_and_each_post_one_message() {
        let task = TaskId::from_random(0xabc);
        let digits = "00000000000000000000000000000abc";
        assert_eq!(
            child_session(&task).as_str(),
            format!("ses_asyncagents_{digits}")
        );
        assert!(is_session(&child_session(&task)));
        let posts = [
            task.prompt(0),
            task.prompt(1),
            task.notice(0),
            task.inheritance(),
            task.last_turn(0),
        ];
        let mut messages: Vec<String> = posts.iter().map(message).collect();
        assert_eq!(messages[0], format!("msg_asyncagents_{digits}_prompt_0"));
        assert!(
            messages
                .iter()
                .all(|name| is_harmless(name) && is_ours(name))
        );
        messages.sort();
        messages.dedup();
        assert_eq!(messages.len(), posts.len());
    }

    #[test]
    fn what_could_lead_elsewhere_is_no_session() {
        for name in ["ses_1", "ses_a-b", "sesx"] {
            assert!(is_session(&name.into()), "{name}");
        }
        for name in [
            "",
            "ses",
            "tty_1",
            "ses_/../x",
            "ses_a b",
            "ses_%2e",
            "ses_ä",
        ] {
            assert!(!is_session(&name.into()), "{name}");
        }
    }
}
