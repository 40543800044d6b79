//! Which session calls a tool. A call has the ID of its tool use, and the transcript of the session
//! that made it has that too: nothing else is believed.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use tokio::{
    task::spawn_blocking,
    time::{self, Instant},
};

use super::{SessionName, transcript};

/// How long Claude Code may take to write the message that calls. A tenth of a second was the most
/// that was seen.
const LONGEST_WAIT: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(5);

/// Where to look first.
#[derive(Debug, Clone, Default)]
pub struct CallHints {
    /// What the hook says that runs before the tool: the session, and a sub-agent's name.
    pub session: Option<SessionName>,
    /// Claude Code's configuration folder.
    pub config: PathBuf,
    /// The folder that it works in.
    pub folder: PathBuf,
    /// What the environment says. It is out of date after `/clear` and `--continue`.
    pub environment: Option<SessionName>,
}

/// Who calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Calling {
    pub session: SessionName,
    /// Whether the transcript has the call; if not, only the environment says so.
    pub is_certain: bool,
}

/// The session that makes a call, by the ID of its tool use. Nothing if no transcript has it and the
/// environment says nothing.
pub async fn find_caller(hints: CallHints, tool_use: &str) -> Option<Calling> {
    let begun = Instant::now();
    loop {
        let (hints_now, id) = (hints.clone(), tool_use.to_owned());
        let found = spawn_blocking(move || look(&hints_now, &id)).await.ok()?;
        if let Some(session) = found {
            let is_certain = true;
            return Some(Calling {
                session,
                is_certain,
            });
        }
        if begun.elapsed() > LONGEST_WAIT {
            break;
        }
        time::sleep(PAUSE.max(begun.elapsed() / 8)).await;
    }
    // A hook that names another session knows better, and cannot be proved either.
    let contradicted = |known: &SessionName| {
        let named = hints.session.as_ref();
        named.is_some_and(|named| named.session != known.session)
    };
    let session = hints.environment.filter(|known| !contradicted(known))?;
    let is_certain = false;
    Some(Calling {
        session,
        is_certain,
    })
}

fn look(hints: &CallHints, tool_use: &str) -> Option<SessionName> {
    let named = [&hints.session, &hints.environment];
    let mut named = named.into_iter().flatten();
    let found = named.find(|name| makes_call(&hints.config, name, tool_use));
    found
        .cloned()
        .or_else(|| search(&hints.config, &hints.folder, tool_use))
}

fn makes_call(config: &Path, name: &SessionName, tool_use: &str) -> bool {
    let file = transcript::find(config, &name.session, name.agent.as_deref());
    let Ok(Some(file)) = file else { return false };
    transcript::has_call(&file, tool_use).unwrap_or(false)
}

fn search(config: &Path, folder: &Path, tool_use: &str) -> Option<SessionName> {
    let found = transcript::find_call(config, folder, tool_use)?;
    SessionName::new(&found.session, found.agent.as_deref())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nothing is in a transcript here, so only what is said can be believed.
    async fn believed(hook: Option<&str>, environment: &str) -> Option<String> {
        let hints = CallHints {
            session: hook.and_then(|session| SessionName::new(session, None)),
            environment: SessionName::new(environment, None),
            ..CallHints::default()
        };
        let found = find_caller(hints, "toolu_1").await?;
        assert!(!found.is_certain);
        Some(found.session.session)
    }

    /// After `/clear` the environment still names the conversation before.
    #[tokio::test]
    async fn the_environment_is_not_believed_against_a_hook() {
        let old = Some("old".to_owned());
        assert_eq!(believed(None, "old").await, old);
        assert_eq!(believed(Some("old"), "old").await, old);
        assert_eq!(believed(Some("new"), "old").await, None);
    }
}
