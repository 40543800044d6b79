//! Reading what a fork needs of a parent's conversation, and no more.

use asyncagents_core::{
    fork::{Parent, Plan, Preset, fork},
    id::SessionId,
    port::{Host, HostError, Recent},
    tokens,
};
use serde_json::json;

use crate::{
    message::{agent, agent_with, called, calling, failed, text, unfinished, user},
    world::{World, plan},
};

/// What a child would inherit as text.
fn context(recent: Recent, plan: &Plan) -> String {
    let parent = if recent.unread {
        Parent::end_of(recent.transcript)
    } else {
        Parent::new(recent.transcript)
    };
    let forked = fork(&parent, &plan.limits, tokens::o200k);
    forked.expect("a fork").context
}

/// What it would inherit if everything were read.
async fn whole_context(world: &World, session: &SessionId, plan: &Plan) -> String {
    let transcript = world.host.messages(session).await.expect("a conversation");
    let recent = Recent {
        transcript,
        unread: false,
    };
    context(recent, plan)
}

fn ids(recent: &Recent) -> Vec<String> {
    let messages = recent.transcript.messages().iter();
    let ids = messages.filter_map(|message| message.id.as_ref());
    ids.map(|id| id.as_str().to_owned()).collect()
}

/// `count` messages of 500 characters.
fn talk(world: &World, session: &SessionId, count: usize) -> Vec<String> {
    let said = "some words. ".repeat(42);
    let one = |n: usize| match n % 2 {
        0 => user(&format!("{n}: {said}")),
        _ => agent(vec![text(&format!("{n}: {said}"))]),
    };
    (0..count)
        .map(|n| world.opencode.add(session, one(n)))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_short_conversation_is_read_whole() {
    for count in [0, 1, 99, 100, 101, 250] {
        let world = World::new();
        let parent = world.opencode.parent();
        let all = talk(&world, &parent, count);
        let recent = world.host.recent(&parent, &plan(None)).await.unwrap();
        assert_eq!(ids(&recent), all);
        assert!(!recent.unread, "{count}");
        assert_eq!(world.opencode.served(), count);
    }
}

#[tokio::test(start_paused = true)]
async fn messages_with_much_in_them_are_read_in_smaller_pages() {
    let world = World::new();
    let parent = world.opencode.parent();
    let all = talk(&world, &parent, 120);
    world.opencode.narrow(30);
    let recent = world.host.recent(&parent, &plan(None)).await.unwrap();
    assert_eq!(ids(&recent), all);
    world.opencode.narrow(0);
    let error = world.host.recent(&parent, &plan(None)).await.err();
    let why = "OpenCode answered 413: this is too long to be passed on".to_owned();
    assert_eq!(error, Some(HostError::Refused(why)));
}

fn too_long(session: &SessionId) -> Option<HostError> {
    let why = format!("the conversation of {session} is longer than 256 MB");
    Some(HostError::Refused(why))
}

#[tokio::test(start_paused = true)]
async fn a_conversation_that_never_ends_is_read_as_far_as_one_answer_may_be_long() {
    let world = World::new();
    let parent = world.opencode.parent();
    let mut message = agent(vec![text(&"a".repeat(16 * 1024 * 1024))]);
    message["info"]["id"] = json!("msg_1");
    world.opencode.never_ends(&json!([message]));
    let error = world.host.messages(&parent).await.err();
    assert_eq!(error, too_long(&parent));
    assert_eq!(world.opencode.asked().len(), 16);
}

#[tokio::test(start_paused = true)]
async fn pages_without_messages_are_not_read_for_ever_either() {
    let mut world = World::new();
    let (child, prompt) = world.working_child().await;
    world.hears_idle(&child).await;
    world.opencode.never_ends(&json!([]));
    let error = world.host.inspect(&child, &prompt).await.err();
    assert_eq!(error, too_long(&child));
}

#[tokio::test(start_paused = true)]
async fn of_twenty_thousand_messages_only_the_newest_are_fetched() {
    let world = World::new();
    let parent = world.opencode.parent();
    let all = talk(&world, &parent, 20_000);
    let recent = world.host.recent(&parent, &plan(None)).await.unwrap();
    // 400 fill the budget; then it looks for a summary, but not for ever.
    let served = world.opencode.served();
    assert!(served <= 1_100, "{served}");
    assert!(recent.unread);
    let read = ids(&recent);
    assert_eq!(read, all[all.len() - read.len()..]);
}

#[tokio::test(start_paused = true)]
async fn only_the_newest_are_fetched_where_tokens_are_the_limit_too() {
    let world = World::new();
    let parent = world.opencode.parent();
    talk(&world, &parent, 20_000);
    let flat = Plan {
        limits: Preset::Flat.limits(),
        ..plan(None)
    };
    let recent = world.host.recent(&parent, &flat).await.unwrap();
    let served = world.opencode.served();
    assert!(recent.unread && served <= 2_800, "{served}");
}

#[tokio::test(start_paused = true)]
async fn what_is_not_fetched_would_not_have_been_inherited() {
    let world = World::new();
    let parent = world.opencode.parent();
    talk(&world, &parent, 2_000);
    let recent = world.host.recent(&parent, &plan(None)).await.unwrap();
    assert!(recent.unread);
    let whole = whole_context(&world, &parent, &plan(None)).await;
    assert_eq!(context(recent, &plan(None)), whole);
}

#[tokio::test(start_paused = true)]
async fn reading_stops_where_a_summary_stands_for_everything_before() {
    let world = World::new();
    let parent = world.opencode.parent();
    talk(&world, &parent, 20_000);
    world.opencode.compact(&parent, None, "so far so good");
    talk(&world, &parent, 30);
    let recent = world.host.recent(&parent, &plan(None)).await.unwrap();
    assert_eq!(world.opencode.served(), 250);
    assert!(recent.unread);
    let inherited = context(recent, &plan(None));
    let begins = "<inherited_context>\n\nAgent:\nso far so good\n\nUser:\n0: some words.";
    assert!(inherited.starts_with(begins), "{inherited}");
}

#[tokio::test(start_paused = true)]
async fn reading_goes_on_to_the_beginning_of_the_tail_that_is_kept_beside_a_summary() {
    let world = World::new();
    let parent = world.opencode.parent();
    talk(&world, &parent, 1_000);
    let tail = talk(&world, &parent, 300);
    world.opencode.compact(&parent, Some(&tail[0]), "so far");
    talk(&world, &parent, 40);
    let recent = world.host.recent(&parent, &plan(None)).await.unwrap();
    assert_eq!(world.opencode.served(), 650, "a page beyond the summary");
    let whole = whole_context(&world, &parent, &plan(None)).await;
    assert_eq!(context(recent, &plan(None)), whole);
}

#[tokio::test(start_paused = true)]
async fn a_compaction_that_failed_stops_nothing() {
    let failure = json!({"name": "UnknownError", "data": {"message": "no"}});
    for broken in [
        json!({"finish": null, "error": failure}),
        json!({"finish": null, "time": {}}),
    ] {
        let world = World::new();
        let parent = world.opencode.parent();
        let early = talk(&world, &parent, 250);
        world.opencode.summarize(&parent, None, "half a", broken);
        talk(&world, &parent, 30);
        let recent = world.host.recent(&parent, &plan(None)).await.unwrap();
        assert_eq!(ids(&recent)[..250], early);
        assert!(!recent.unread);
        assert!(!context(recent, &plan(None)).contains("half a"));
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_may_lose_nothing_reads_everything() {
    let world = World::new();
    let parent = world.opencode.parent();
    let all = talk(&world, &parent, 3_000);
    let exact = Plan {
        limits: Preset::Exact.limits(),
        ..plan(None)
    };
    let recent = world.host.recent(&parent, &exact).await.unwrap();
    assert_eq!(ids(&recent), all);
}

#[tokio::test(start_paused = true)]
async fn what_came_after_the_launch_is_not_inherited() {
    let world = World::new();
    let parent = world.opencode.parent();
    world.opencode.add(&parent, user("look into it"));
    let asked_in = world.opencode.add(
        &parent,
        agent_with(
            json!({"finish": "tool-calls"}),
            vec![
                text("I will read, and launch two."),
                called("call_1", "read", "the file"),
                called("call_2", "asyncagents_task", "launched task_1"),
                called("call_3", "asyncagents_task", "launched task_2"),
            ],
        ),
    );
    talk(&world, &parent, 10);
    let plan = plan(Some(&asked_in));
    let recent = world.host.recent(&parent, &plan).await.unwrap();
    assert_eq!(
        context(recent, &plan),
        "<inherited_context>\n\n\
         User:\nlook into it\n\n\
         Agent:\nI will read, and launch two.\n\
         [Tool: read] {\"filePath\":\"call_1.rs\"}\n[Tool result]\nthe file\n\
         </inherited_context>"
    );
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_not_over_at_the_launch_is_not_inherited() {
    let world = World::new();
    let parent = world.opencode.parent();
    let asked_in = world.opencode.add(
        &parent,
        unfinished(vec![
            text("Two at once."),
            calling("call_1", "bash"),
            calling("call_2", "asyncagents_task"),
        ]),
    );
    let plan = plan(Some(&asked_in));
    let recent = world.host.recent(&parent, &plan).await.unwrap();
    let inherited = context(recent, &plan);
    assert!(inherited.contains("Two at once."));
    assert!(!inherited.contains("[Tool"), "{inherited}");
}

#[tokio::test(start_paused = true)]
async fn an_old_launch_and_what_was_cut_off_stay_in_the_history() {
    let world = World::new();
    let parent = world.opencode.parent();
    let abort = json!({"name": "MessageAbortedError", "data": {"message": "Aborted"}});
    world.opencode.add(
        &parent,
        agent(vec![called(
            "call_1",
            "asyncagents_task",
            "launched task_0",
        )]),
    );
    world
        .opencode
        .add(&parent, failed(abort, vec![calling("call_2", "bash")]));
    let asked_in = world.opencode.add(&parent, agent(vec![text("Again.")]));
    let plan = plan(Some(&asked_in));
    let recent = world.host.recent(&parent, &plan).await.unwrap();
    let inherited = context(recent, &plan);
    assert!(inherited.contains("launched task_0"));
    assert!(inherited.contains("[Tool: bash]"));
}

#[tokio::test(start_paused = true)]
async fn a_launch_long_ago_is_found_without_reading_further_than_needed() {
    let world = World::new();
    let parent = world.opencode.parent();
    talk(&world, &parent, 5_000);
    let asked_in = world.opencode.add(&parent, agent(vec![text("Now.")]));
    let late = talk(&world, &parent, 450);
    let plan = plan(Some(&asked_in));
    let recent = world.host.recent(&parent, &plan).await.unwrap();
    let read = ids(&recent);
    assert_eq!(read.last(), Some(&asked_in));
    assert!(!read.contains(&late[0]));
    assert!(recent.unread);
    let served = world.opencode.served();
    assert!(served <= 1_600, "{served}");
}

#[tokio::test(start_paused = true)]
async fn a_summary_written_after_the_launch_is_not_inherited() {
    let world = World::new();
    let parent = world.opencode.parent();
    let early = talk(&world, &parent, 4);
    let asked_in = world.opencode.add(&parent, agent(vec![text("Now.")]));
    world.opencode.compact(&parent, None, "later on");
    let plan = plan(Some(&asked_in));
    let recent = world.host.recent(&parent, &plan).await.unwrap();
    assert_eq!(ids(&recent)[..4], early);
    assert!(!context(recent, &plan).contains("later on"));
}

#[tokio::test(start_paused = true)]
async fn when_the_launching_message_is_gone_everything_is_read() {
    let world = World::new();
    let parent = world.opencode.parent();
    let mut all = talk(&world, &parent, 150);
    let asked_in = world.opencode.add(&parent, agent(vec![text("Now.")]));
    all.extend(talk(&world, &parent, 10));
    world.opencode.remove_message(&parent, &asked_in);
    let plan = plan(Some(&asked_in));
    let recent = world.host.recent(&parent, &plan).await.unwrap();
    assert_eq!(ids(&recent), all);
    assert!(!recent.unread);
}

#[tokio::test(start_paused = true)]
async fn what_is_no_message_is_passed_over_and_counted() {
    let world = World::new();
    let parent = world.opencode.parent();
    world.opencode.add(&parent, user("hello"));
    let strange = json!({"info": {"role": "oracle"}, "parts": []});
    world.opencode.add(&parent, strange);
    world.opencode.add(&parent, agent(vec![text("hi")]));
    let recent = world.host.recent(&parent, &plan(None)).await.unwrap();
    assert_eq!(recent.transcript.messages().len(), 2);
    assert_eq!(recent.transcript.skipped().messages, 1);
}

#[tokio::test(start_paused = true)]
async fn a_conversation_that_is_gone_is_not_an_empty_one() {
    let world = World::new();
    let parent = world.opencode.parent();
    world.opencode.remove(&parent);
    let gone = HostError::NoSession(parent.clone());
    let recent = world.host.recent(&parent, &plan(None)).await;
    assert_eq!(recent.err(), Some(gone.clone()));
    let messages = world.host.messages(&parent).await;
    assert_eq!(messages.err(), Some(gone));
}
