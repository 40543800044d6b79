//! Which model a task has: checked before there is a task, and replaced when it is unavailable.

use std::time::Duration;

use asyncagents_core::{
    agent::Effort,
    answer::{self, MessageState},
    id::TaskId,
    model_choice::AllowedModels,
    request::{Caller, MessageRequest, TaskArgs},
    task::Status,
};
use asyncagents_testkit::scripted_host::{Call, Line, Script, ScriptedHost, Step};
use rstest::rstest;

use crate::harness::{Harness, Process, asks, seconds, takes, until};

const ALL: &[Effort] = &[Effort::Low, Effort::Medium, Effort::High];

/// A host in which every child is out of quota until another model goes on.
fn out_of_quota(end: Step) -> Harness {
    let script = Script::of([Step::Wait(seconds(1)), end])
        .when("you go on in its place", takes(seconds(30)))
        .with_models(&[("a/one", ALL), ("a/two", &[Effort::Low]), ("b/three", &[])]);
    Harness::new(script).with(|settings| {
        settings.models.fallbacks = ["a/one", "b/three"].map(Into::into).to_vec();
        // No inspection comes to the rescue.
        settings.inspect_after = seconds(3_600);
    })
}

fn asking(model: Option<&str>, effort: Option<&str>) -> TaskArgs {
    TaskArgs {
        model: model.map(str::to_owned),
        effort: effort.map(str::to_owned),
        ..asks("one")
    }
}

/// The prompts that a child was given: their ends, models and efforts.
fn prompts(harness: &Harness, task: &TaskId) -> Vec<String> {
    let prompts = harness
        .child(task)
        .into_iter()
        .filter_map(|line| match line {
            Line::Prompted {
                id, model, effort, ..
            } => {
                let run = id.rsplit('.').next().unwrap_or_default().to_owned();
                let words = [Some(run), model, effort].into_iter().flatten();
                Some(words.collect::<Vec<_>>().join(" "))
            }
            _ => None,
        });
    prompts.collect()
}

async fn output(process: &Process, task: &TaskId) -> String {
    answer::output(
        &process.output(task).await,
        process.manager.now(),
        answer::Reader::Person,
    )
}

#[rstest]
#[case::gave_up(Step::Unavailable("out of quota".to_owned()))]
#[case::goes_on_trying(Step::Retry("out of quota".to_owned()))]
#[tokio::test(start_paused = true)]
async fn the_same_session_is_prompted_to_go_on_with_the_next_model(#[case] end: Step) {
    let harness = out_of_quota(end);
    let process = harness.start().await;
    let task = process.launch_args(asking(Some("a/one"), None)).await;
    process.until_status(&task, Status::Completed).await;
    assert_eq!(prompts(&harness, &task), ["0 a/one", "0m1 b/three"]);
    let told = output(&process, &task).await;
    let line = "Model: a/one was unavailable (out of quota); b/three goes on instead.";
    assert!(told.contains(line), "{told}");
    // A follow-up begins with the model that worked.
    process
        .resume(&task, "you go on in its place")
        .await
        .expect("resumed");
    process.settled().await;
    let all = ["0 a/one", "0m1 b/three", "1 b/three"];
    assert_eq!(prompts(&harness, &task), all);
}

#[tokio::test(start_paused = true)]
async fn when_no_model_is_left_the_error_names_all() {
    let script = Script::of([Step::Unavailable("out of quota".to_owned())])
        .with_models(&[("a/one", ALL), ("b/three", &[])]);
    let harness = Harness::new(script).with(|settings| {
        settings.models.fallbacks = ["b/three", "c/four", "a/two"].map(Into::into).to_vec();
        let allowed = ["a/*", "b/*"].map(str::to_owned);
        settings.models.allowed = AllowedModels::new(allowed.to_vec());
    });
    let process = harness.start().await;
    let task = process.launch_args(asking(Some("a/one"), None)).await;
    process.until_status(&task, Status::Error).await;
    let told = output(&process, &task).await;
    let why = "Error: no model is left to ask; a/one: out of quota; b/three: out of quota; \
               c/four: the host has no such model; a/two: the host has no such model";
    assert!(told.contains(why), "{told}");
}

/// What is full is the model that is asked, not the one that was asked for.
#[tokio::test(start_paused = true)]
async fn a_task_takes_a_slot_of_the_model_that_goes_on_with_it() {
    let harness = out_of_quota(Step::Unavailable("out of quota".to_owned())).with(|settings| {
        let models = ["a/one", "b/three"];
        settings.limits.per_model = models.map(|model| (model.into(), 1)).into();
    });
    let process = harness.start().await;
    let first = process.launch_args(asking(Some("a/one"), None)).await;
    until("it has fallen back", async || {
        process.look(&first).await.progress.reprompted > 0
    })
    .await;
    let same = process.launch_args(asking(Some("b/three"), None)).await;
    let other = process.launch_args(asking(Some("a/one"), None)).await;
    process.until_prompted(&other).await;
    assert_eq!(process.status(&same).await, Status::Queued);
    process.settled().await;
    assert_eq!(process.status(&same).await, Status::Completed);
}

#[tokio::test(start_paused = true)]
async fn without_another_model_a_host_that_goes_on_trying_is_left_to_it() {
    let harness = out_of_quota(Step::Retry("out of quota".to_owned()))
        .with(|settings| settings.models.fallbacks.clear());
    let process = harness.start().await;
    let task = process.launch("one").await;
    process.until_prompted(&task).await;
    tokio::time::sleep(seconds(60)).await;
    assert_eq!(process.status(&task).await, Status::Running);
    assert_eq!(prompts(&harness, &task), ["0"]);
}

/// It goes on trying, so it has the prompt, whatever became of the answer to that.
#[tokio::test(start_paused = true)]
async fn a_host_that_goes_on_trying_has_been_prompted() {
    let script = Script::of([Step::Retry("out of quota".to_owned())]);
    let harness = Harness::new(script);
    harness.host.faults().lose_answer.insert(Call::Prompt, 1);
    let process = harness.start().await;
    let task = process.launch("one").await;
    process.until_prompted(&task).await;
    assert_eq!(prompts(&harness, &task), ["0"]);
}

/// What is on its way to a child is told when the next model has its prompt.
#[tokio::test(start_paused = true)]
async fn a_message_to_a_child_whose_model_is_replaced_still_reaches_it() {
    let harness = out_of_quota(Step::Unavailable("out of quota".to_owned()));
    let process = harness.start().await;
    let task = process.launch_args(asking(Some("a/one"), None)).await;
    process.until_prompted(&task).await;
    let child = ScriptedHost::session_of(&task);
    harness.host.faults().busy.insert(child);
    // The next prompt will take its time, and the message is tried meanwhile.
    harness.host.faults().slow = seconds(5);
    let request = MessageRequest::new(task.as_str(), "left".to_owned()).expect("a message");
    let told = process.manager.message(&Caller::Person, request).await;
    told.expect("it works");
    until("it falls back", async || {
        process.look(&task).await.progress.reprompted > 0
    })
    .await;
    process.until_prompted(&task).await;
    harness.host.faults().busy.clear();
    harness.host.faults().slow = Duration::ZERO;
    process.until_status(&task, Status::Completed).await;
    let messages = process.output(&task).await.messages.into_iter();
    let states: Vec<MessageState> = messages.map(|told| told.state).collect();
    assert_eq!(states, [MessageState::Delivered]);
}

/// The prompt is on its way when the worker dies, or was never sent: it is there once in the end.
#[rstest]
#[tokio::test(start_paused = true)]
async fn a_worker_that_dies_while_it_falls_back_prompts_once(
    #[values(true, false)] sent: bool,
    #[values(true, false)] retries: bool,
) {
    let why = "out of quota".to_owned();
    let end = if retries {
        Step::Retry(why)
    } else {
        Step::Unavailable(why)
    };
    let harness = out_of_quota(end);
    let process = harness.start().await;
    let task = process.launch_args(asking(Some("a/one"), None)).await;
    process.until_prompted(&task).await;
    let a_while = Duration::from_millis(1_500);
    if sent {
        harness.host.faults().on_its_way = a_while;
    } else {
        harness.host.faults().slow = a_while;
    }
    until("it falls back", async || {
        process.look(&task).await.progress.reprompted > 0
    })
    .await;
    if sent && retries {
        // It is stopped first.
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    process.worker.kill();
    harness.host.faults().slow = Duration::ZERO;
    let process = harness.start().await;
    process.until_status(&task, Status::Completed).await;
    assert_eq!(prompts(&harness, &task), ["0 a/one", "0m1 b/three"]);
}

/// A host that does not say whether it has a prompt is asked again: what was sent is not sent twice,
/// and nothing is given up.
#[rstest]
#[tokio::test(start_paused = true)]
async fn a_host_that_cannot_be_reached_while_a_task_falls_back_is_asked_again(
    #[values(true, false)] dies: bool,
) {
    let harness = out_of_quota(Step::Unavailable("out of quota".to_owned()));
    let process = harness.start().await;
    let task = process.launch_args(asking(Some("a/one"), None)).await;
    process.until_prompted(&task).await;
    let unreachable = || harness.host.faults().fail.insert(Call::Confirm, 3);
    let process = if dies {
        harness.host.faults().on_its_way = Duration::from_millis(1_500);
        until("it falls back", async || {
            process.look(&task).await.progress.reprompted > 0
        })
        .await;
        process.worker.kill();
        unreachable();
        harness.start().await
    } else {
        unreachable();
        process
    };
    process.until_status(&task, Status::Completed).await;
    assert_eq!(
        harness.host.faults().fail[&Call::Confirm],
        0,
        "it was asked"
    );
    assert_eq!(prompts(&harness, &task), ["0 a/one", "0m1 b/three"]);
}

#[rstest]
#[case::unknown(
    asking(Some("a/onne"), None),
    "there is no model `a/onne` here; there are a/one, a/two and b/three"
)]
#[case::effort(
    asking(Some("a/two"), Some("high")),
    "the model `a/two` has no effort `high`; it has low"
)]
#[case::no_effort(asking(Some("b/three"), Some("low")), "it has none to choose from")]
#[case::unknown_effort(
    asking(None, Some("extreme")),
    "`effort`: extreme is refused; allowed: low, medium or high"
)]
#[case::effort_of_what(
    asking(None, Some("low")),
    "does not say which model the agent would have"
)]
#[tokio::test(start_paused = true)]
async fn what_a_host_does_not_have_is_refused_before_there_is_a_task(
    #[case] args: TaskArgs,
    #[case] why: &str,
) {
    let harness = out_of_quota(Step::Hang);
    let process = harness.start().await;
    let refused = process.try_task(args).await.expect_err("refused");
    assert!(refused.to_string().contains(why), "{refused}");
    assert_eq!(process.list("main").await, "No background tasks found");
}

#[tokio::test(start_paused = true)]
async fn only_what_the_user_allows_may_be_named() {
    let harness = out_of_quota(Step::Answer("ok".to_owned())).with(|settings| {
        settings.models.allowed = AllowedModels::new(vec!["a/*".to_owned()]);
    });
    let process = harness.start().await;
    let refused = process.try_task(asking(Some("b/three"), None)).await;
    assert_eq!(
        refused.expect_err("refused").to_string(),
        "the model `b/three` is not among those that the setting `models.allowed` allows: a/*. \
         Only the user's own settings can change that"
    );
    let unknown = process.try_task(asking(Some("b/four"), None)).await;
    let unknown = unknown.expect_err("refused").to_string();
    assert!(unknown.ends_with("there are a/one and a/two"), "{unknown}");
    let task = process
        .launch_args(asking(Some("a/two"), Some("low")))
        .await;
    process.settled().await;
    assert_eq!(prompts(&harness, &task), ["0 a/two low"]);
}

/// The file that gives an agent its model may be a project's.
#[tokio::test(start_paused = true)]
async fn an_agent_whose_own_model_is_not_allowed_is_refused() {
    let script = Script::of([Step::Answer("ok".to_owned())])
        .with_models(&[("a/one", ALL), ("b/three", &[])])
        .with_model_of_agent("general", "a/one")
        .with_model_of_agent("explore", "b/three");
    let harness = Harness::new(script).with(|settings| {
        settings.models.allowed = AllowedModels::new(vec!["a/*".to_owned()]);
    });
    let process = harness.start().await;
    let explore = |model: Option<&str>| TaskArgs {
        agent: "explore".to_owned(),
        ..asking(model, None)
    };
    let refused = process.try_task(explore(None)).await;
    assert_eq!(
        refused.expect_err("refused").to_string(),
        "the model `b/three` of the agent `explore` is not among those that the setting \
         `models.allowed` allows: a/*. Only the user's own settings can change that"
    );
    assert_eq!(process.list("main").await, "No background tasks found");
    // With another model, or where its own is allowed, an agent works.
    process.launch_args(explore(Some("a/one"))).await;
    process.launch_args(explore(Some("inherit"))).await;
    process.launch_args(asking(None, None)).await;
    process.settled().await;
}

/// A host that says nothing of its models is given any; an effort it might pass over.
#[tokio::test(start_paused = true)]
async fn a_host_that_cannot_say_is_told_no_effort() {
    let harness = Harness::new(Script::of(takes(seconds(1))));
    let process = harness.start().await;
    let refused = process.try_task(asking(Some("a/one"), Some("low"))).await;
    let refused = refused.expect_err("refused").to_string();
    assert!(
        refused.contains("this host does not say what its models have"),
        "{refused}"
    );
    let task = process.launch_args(asking(Some("a/one"), None)).await;
    process.settled().await;
    assert_eq!(prompts(&harness, &task), ["0 a/one"]);
}

/// A launch stays fast: what a host has listed it is not asked again.
#[tokio::test(start_paused = true)]
async fn the_list_of_models_is_asked_for_once_in_a_while() {
    let harness = out_of_quota(Step::Answer("ok".to_owned()));
    let process = harness.start().await;
    let asked = || harness.host.faults().asked.get(&Call::Models).copied();
    for _ in 0..3 {
        process.launch_args(asking(Some("a/one"), None)).await;
    }
    assert_eq!(asked(), Some(1));
    process.settled().await;
    tokio::time::sleep(seconds(61)).await;
    process.launch_args(asking(Some("a/one"), None)).await;
    assert_eq!(asked(), Some(2));
}
