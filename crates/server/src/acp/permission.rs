//! Questions whether a call may be run, for the client.

use std::future::pending;

use agent_client_protocol::{
    is_incoming_transport_closed,
    v1::schema::{
        PermissionOption, PermissionOptionKind, RequestPermissionOutcome, RequestPermissionRequest,
        ToolCallUpdate,
    },
};
use asyncagents_core::{agent::Preview, id::SessionId, question::Reply};

use super::{OpenSessions, session::Session};

/// Why nobody has answered.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NotAnswered {
    /// The connection is over.
    Gone,
    /// The client does not ask, for this reason.
    Refused(String),
}

/// A call that a session wants to make and may not make unasked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallQuestion {
    pub session: SessionId,
    /// The model's name for the call.
    pub call: String,
    pub tool: String,
    /// What the call would touch or run.
    pub target: String,
    pub preview: Preview,
    /// What `always` would cover, for people.
    pub always: String,
}

impl OpenSessions {
    /// Asks the client whether a call may be run. If this is dropped, the question is withdrawn.
    pub async fn ask(&self, question: CallQuestion) -> Reply {
        let Ok(session) = self.get(&question.session) else {
            return rejected("its session is not open in the editor any more");
        };
        // What was said before the question is shown before it.
        session.all_shown().await;
        let call = session.show_asked(&question);
        let update = ToolCallUpdate::from(call);
        match ask(&session, update, &question.always).await {
            Ok(reply) => reply,
            Err(NotAnswered::Refused(why)) => rejected(&why),
            // To close an editor is not to say no: the call is asked about again when the session goes on.
            Err(NotAnswered::Gone) => pending().await,
        }
    }
}

/// Asks the client about something.
///
/// # Errors
/// When the client is gone or knows no such question.
pub(super) async fn ask(
    session: &Session,
    call: ToolCallUpdate,
    always: &str,
) -> Result<Reply, NotAnswered> {
    let options = [
        ("once", "Allow".to_owned(), PermissionOptionKind::AllowOnce),
        (
            "always",
            format!("Always allow ({always})"),
            PermissionOptionKind::AllowAlways,
        ),
        (
            "reject",
            "Reject".to_owned(),
            PermissionOptionKind::RejectOnce,
        ),
    ];
    let options = options.map(|(id, name, kind)| PermissionOption::new(id, name, kind));
    let request =
        RequestPermissionRequest::new(session.id.as_str().to_owned(), call, options.to_vec());
    let answer = session.client.send_request(request).block_task().await;
    let answer = answer.map_err(|error| {
        if is_incoming_transport_closed(&error) || session.client.is_incoming_closed() {
            NotAnswered::Gone
        } else {
            NotAnswered::Refused(format!("nobody can be asked: {}", error.message))
        }
    })?;
    Ok(match answer.outcome {
        RequestPermissionOutcome::Selected(chosen) => match &*chosen.option_id.0 {
            "once" => Reply::Once,
            "always" => Reply::Always,
            _ => Reply::Reject { text: None },
        },
        _ => rejected("the user has cancelled the question"),
    })
}

fn rejected(why: &str) -> Reply {
    let text = Some(why.to_owned());
    Reply::Reject { text }
}
