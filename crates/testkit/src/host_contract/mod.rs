//! What every [`Host`] promises, as stories that run against any of them.
//!
//! A host passes when [`host_contract`] returns. A promise that is broken is named in the panic,
//! together with all others that are. Hosts may differ only in what [`Abilities`] lists.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod answering;
mod at_once;
mod hearing;
mod making;
mod prompting;
mod reading;
mod restarting;
mod scene;
mod script;
mod stopping;
mod telling;

use std::{pin::Pin, sync::Arc, time::Duration};

use async_trait::async_trait;
use asyncagents_core::{fork::Plan, id::SessionId, port::Host};
use tokio::time;

use scene::Scene;
pub use script::{Does, LAST_TURN, SCRIPT, TOOL, does};

/// Long enough for a busy machine; no story waits for it unless a promise is broken.
const STORY_TIMEOUT: Duration = Duration::from_secs(90);

/// Stories about things that happen at once run so often.
const TIMES_AT_ONCE: usize = 20;

/// A host, its agents that play [`SCRIPT`], and what a story needs to know of them.
#[async_trait]
pub trait Site: Send + Sync {
    /// In what the host differs from others.
    fn abilities(&self) -> Abilities;

    /// The host, as the process of ours that runs now has it.
    fn host(&self) -> Arc<dyn Host>;

    /// A new session of a person, whose one prompt in [`SCRIPT`] that is answered has been
    /// answered.
    async fn parent(&self) -> SessionId;

    /// What the model of a session was shown last, oldest first.
    async fn shown(&self, session: &SessionId) -> String;

    /// What the agent calls the tool that [`SCRIPT`] calls.
    fn tool(&self) -> &'static str {
        TOOL
    }

    /// Words of a prompt, none of [`SCRIPT`]'s, on which the agent asks for a permission, and answers
    /// when it has it.
    fn asks_for_permission_on(&self) -> &'static str;

    /// Kills the process of ours and starts another one. An agent in a process of its own goes on.
    async fn restart(&self);

    /// Stops an agent that is a process of its own in the middle of its work, and starts it again.
    async fn restart_agent(&self) {
        panic!("the agent has a process of its own, which can be restarted");
    }
}

/// In what hosts may differ, beside what [`Host`] itself says of them.
#[derive(Debug, Clone, Default)]
pub struct Abilities {
    /// A prompt or a notice that is given twice is kept once. Elsewhere the caller has to ask
    /// before it repeats itself.
    pub keeps_posts_once: bool,
    /// A notice to a session at work is held back until its model is asked again. One that is left
    /// over after an abort arrives when it is given once more.
    pub holds_notices: bool,
    /// A session that the host has not made, by a name of another form, exists and can be told
    /// things: a shell's, for instance.
    pub has_foreign_sessions: bool,
    /// The plan with which a session can begin with its parent's own messages.
    pub branches: Option<Plan>,
    /// One question can be asked beside a session.
    pub asks_once: bool,
    /// The agent is a process of its own.
    pub is_another_process: bool,
}

type StoryFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// One promise of a host.
struct Story {
    name: &'static str,
    tell: fn(Scene) -> StoryFuture,
}

macro_rules! stories {
    ($($group:ident { $($story:ident,)+ })+) => {
        &[$($(Story {
            name: concat!(stringify!($group), "::", stringify!($story)),
            tell: |scene| Box::pin($group::$story(scene)),
        },)+)+]
    };
}

const STORIES: &[Story] = stories! {
    making {
        a_task_can_be_given_to_each_agent_that_is_named,
        a_task_has_one_session,
        two_tasks_have_two_sessions,
        a_branch_begins_with_the_messages_of_the_parent,
    }
    prompting {
        a_prompt_that_was_never_sent_is_not_in_the_history,
        a_prompt_that_was_taken_is_in_the_history,
        a_child_ends_with_its_answer_and_what_it_used,
        a_child_that_fails_says_why,
        a_child_at_work_is_working,
        the_same_prompt_is_worked_on_once,
        the_next_prompt_has_its_own_end_and_usage_is_of_all,
        what_is_inherited_is_shown_before_the_prompt,
        what_is_inherited_twice_is_there_once,
    }
    stopping {
        a_prompt_that_is_aborted_is_cancelled,
        a_session_that_was_aborted_works_on_the_next_prompt,
        an_abort_of_an_idle_session_changes_nothing,
        an_abort_of_no_session_is_harmless,
        a_deleted_session_is_gone_for_everyone,
        a_session_is_deleted_twice,
        a_session_is_deleted_in_the_middle_of_its_work,
    }
    reading {
        messages_are_whole_and_oldest_first,
        messages_show_tool_calls,
        what_is_recent_is_the_end_of_all_messages,
    }
    telling {
        a_notice_that_was_taken_is_confirmed,
        a_notice_that_was_never_sent_is_not_confirmed,
        the_same_notice_is_there_once,
        a_notice_is_shown_to_the_model,
        a_notice_to_a_session_at_work_arrives,
        a_notice_wakes_an_idle_session_where_the_host_says_so,
        no_notice_reaches_a_session_that_is_gone,
        a_session_of_another_form_is_told_or_gone,
        one_question_is_answered_beside_the_session,
        one_question_has_no_answer_after_its_time,
    }
    answering {
        a_child_that_asks_is_at_work_until_it_is_answered,
        a_question_is_answered_once,
        a_question_is_found_and_answered_by_another_process,
        a_question_that_was_never_asked_is_not_answered,
        a_child_that_asks_can_be_stopped,
        a_message_to_a_child_at_work_arrives,
    }
    hearing {
        the_end_of_a_run_is_reported,
        an_abort_is_reported,
        a_deleted_session_is_reported,
        what_is_reported_adds_up_to_what_is_inspected,
        a_report_that_is_repeated_has_the_same_key,
        nothing_is_observed_after_the_end,
    }
    restarting {
        another_process_finds_everything,
        a_child_at_work_is_followed_by_another_process,
        an_abort_by_another_process_ends_the_work,
        a_child_whose_agent_was_stopped_is_interrupted,
    }
};

/// Stories whose outcome could depend on who is first.
const AT_ONCE: &[Story] = stories! {
    at_once {
        an_abort_right_after_the_prompt_ends_it,
        sessions_at_work_together_have_their_own_answers,
        notices_that_come_together_all_arrive,
        all_listeners_hear_the_same,
        a_prompt_and_a_notice_that_come_together_both_arrive,
    }
};

/// Runs every story on a site of its own.
///
/// # Panics
/// When a promise is broken, with the names of all that are.
pub async fn host_contract<S: Site + 'static>(new_site: impl AsyncFn() -> S) {
    slow_host_contract(new_site, TIMES_AT_ONCE).await;
}

/// The same for a host that takes long to begin: stories about things that happen at once run so often.
///
/// # Panics
/// When a promise is broken, with the names of all that are.
pub async fn slow_host_contract<S: Site + 'static>(new_site: impl AsyncFn() -> S, times: usize) {
    let once = STORIES.iter().map(|story| (story, 1));
    let often = AT_ONCE.iter().map(|story| (story, times));
    let mut broken = Vec::new();
    for (Story { name, tell }, times) in once.chain(often) {
        for _ in 0..times {
            let site = Arc::new(new_site().await);
            let story = async move { tell(Scene::begin(site).await).await };
            let ended = tokio::spawn(time::timeout(STORY_TIMEOUT, story)).await;
            let why = match ended {
                Ok(Ok(())) => continue,
                Ok(Err(_)) => "waited in vain",
                Err(_) => "panicked",
            };
            broken.push(format!("{name} ({why})"));
            break;
        }
    }
    assert!(
        broken.is_empty(),
        "{} of {} promises are broken:\n  {}",
        broken.len(),
        STORIES.len() + AT_ONCE.len(),
        broken.join("\n  ")
    );
}
