//! What the agent is told, and what it asks.

use std::{collections::BTreeMap, time::Duration};

use asyncagents_core::{
    agent::Kind,
    fork::Plan,
    id::{PostId, SessionId, TaskId},
    lifecycle::Standing,
    moment::Moment,
    notify::Message,
    port::{Delivery, Host, Inheritance, NewSession, Notice, Report, SessionEvent},
    progress::{Observation, Progress},
    question::{Answered, Question, QuestionKind, Reply},
    skill::{Role, Terms},
    task::Outcome,
};
use asyncagents_hosts::agent::{AgentHost, AskedCall, Judge, Verdict};
use asyncagents_testkit::{
    host_contract::{Does, SCRIPT},
    plain,
};
use serde_json::json;
use tokio::time::{sleep, timeout};

use crate::{
    crashing::hangs,
    fake::{
        ASKS, Abilities, BESIDE, CHANGES, CHOOSES, FakeAgent, Hook, LAUNCHES, LISTENS, Says,
        TAKES_BACK,
    },
    world::{World, child, ended, until},
};

const PARENT: &str = "ses_parent";

/// The words of an answer.
fn said(standing: &Standing) -> &str {
    match standing {
        Standing::Done {
            outcome: Outcome::Completed,
            answer: Some(answer),
        } => answer,
        other => panic!("it has no answer: {other:?}"),
    }
}

/// What a child inherits goes with its first prompt, as a text beside it, once.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_inherited_is_embedded_in_the_first_prompt() {
    let world = World::new(FakeAgent::default());
    let (host, task) = (world.host(), TaskId::from_random(1));
    let session = child(&world, &task).await;
    let what = Inheritance {
        id: task.inheritance(),
        preamble: "You know this.".to_owned(),
        context: "user: hello".to_owned(),
    };
    host.inject(&session, what).await.expect("it is taken");
    for run in 0..2 {
        let prompt = plain::prompt(task.prompt(run), "Count the files");
        host.prompt(&session, prompt).await.expect("it is taken");
        ended(&host, &session, &task.prompt(run)).await;
    }
    let prompts = world.agent.asked("session/prompt");
    let blocks = prompts[0]["prompt"].as_array().expect("blocks");
    assert_eq!(blocks.len(), 3);
    assert_eq!(blocks[1]["resource"]["text"], "user: hello");
    let text = blocks[2]["text"].as_str().expect("a text");
    assert_eq!(
        text,
        format!("Count the files\n\n[asyncagents {}]", task.prompt(0))
    );
    assert_eq!(prompts[1]["prompt"].as_array().map(Vec::len), Some(1));
}

/// The session is opened in the mode in which the agent asks, and with the words of the profile.
#[tokio::test(flavor = "multi_thread")]
async fn a_profile_that_only_reads_has_a_mode_for_that() {
    for (agent, mode) in [("general", "ask"), ("explore", "look")] {
        let world = World::new(FakeAgent::default());
        let (host, task) = (world.host(), TaskId::from_random(1));
        let new = NewSession {
            agent: agent.into(),
            ..plain::new_session(&task, &PARENT.into())
        };
        let session = host.create(new).await.expect("a session");
        let prompt = plain::prompt(task.prompt(0), "Count the files");
        host.prompt(&session, prompt).await.expect("it is taken");
        ended(&host, &session, &task.prompt(0)).await;
        let modes = world.agent.asked("session/set_mode");
        assert_eq!(modes[0]["modeId"], mode);
        let opened = world.agent.asked("session/new");
        let system = &opened[0]["systemPrompt"];
        let expected = json!({"mode": "append",
            "content": [{"type": "text", "text": format!("You are {agent}.")}]});
        assert_eq!(*system, expected);
    }
}

/// An agent may never say whether it was told something. It can be stopped all the same.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_does_not_say_whether_it_was_told_something_can_be_stopped() {
    let world = World::new(FakeAgent::with(Abilities {
        says_that_it_was_told: Says::Never,
        ..Abilities::default()
    }));
    let (host, task) = (world.host(), TaskId::from_random(1));
    let session = child(&world, &task).await;
    let prompt = plain::prompt(task.prompt(0), hanging());
    host.prompt(&session, prompt).await.expect("it is taken");
    until("session/prompt is asked", || {
        !world.agent.asked("session/prompt").is_empty()
    })
    .await;
    let delivered = host.deliver(&session, blue(&task)).await;
    assert_eq!(delivered, Ok(Delivery::Taken));
    until("_session/steering is asked", || {
        !world.agent.asked("_session/steering").is_empty()
    })
    .await;
    let stopped = timeout(Duration::from_secs(30), host.abort(&session)).await;
    assert_eq!(stopped, Ok(Ok(())));
    assert_eq!(world.agent.asked("session/cancel").len(), 1);
}

/// A stop that comes right behind a prompt stops that: the agent does not work on for nobody.
#[tokio::test(flavor = "multi_thread")]
async fn a_stop_does_not_overtake_what_it_is_to_stop() {
    let world = World::new(FakeAgent::default());
    let (host, task) = (world.host(), TaskId::from_random(1));
    let session = child(&world, &task).await;
    // Its process is there then.
    let prompt = plain::prompt(task.prompt(0), "Count the files");
    host.prompt(&session, prompt).await.expect("it is taken");
    ended(&host, &session, &task.prompt(0)).await;
    for run in 1..50 {
        let prompt = plain::prompt(task.prompt(run), hanging());
        host.prompt(&session, prompt).await.expect("it is taken");
        let stopped = timeout(Duration::from_secs(4), host.abort(&session)).await;
        assert_eq!(stopped, Ok(Ok(())), "{run}");
    }
    let methods = world.agent.methods();
    let orders = ["session/prompt", "session/cancel"];
    let methods = methods.iter().filter(|method| orders.contains(&&***method));
    let methods: Vec<_> = methods.collect();
    for pair in methods[1..].chunks(2) {
        assert_eq!(pair, orders, "{methods:?}");
    }
}

/// What a child is told in the middle of its work.
fn blue(task: &TaskId) -> Notice {
    Notice {
        id: task.message(1),
        message: Message {
            visible: "the colour is blue".to_owned(),
            hidden: String::new(),
        },
    }
}

/// An agent may be slow to say that it was told something, or never say it. It is told that once all
/// the same: its answer is waited for, or else its history is looked at.
#[tokio::test(flavor = "multi_thread")]
async fn what_an_agent_is_told_at_work_is_not_told_again_when_it_is_slow_to_say_so() {
    let told = async |says| {
        let world = World::new(FakeAgent::with(Abilities {
            says_that_it_was_told: says,
            ..Abilities::default()
        }));
        let (host, task) = (world.host(), TaskId::from_random(1));
        let session = child(&world, &task).await;
        let prompt = plain::prompt(task.prompt(0), LISTENS);
        host.prompt(&session, prompt).await.expect("it is taken");
        until("session/prompt is asked", || {
            !world.agent.asked("session/prompt").is_empty()
        })
        .await;
        let delivered = host.deliver(&session, blue(&task)).await;
        assert_eq!(delivered, Ok(Delivery::Taken));
        let name = task.prompt(0);
        let end = timeout(Duration::from_secs(60), ended(&host, &session, &name)).await;
        assert_eq!(said(&end.expect("it ends")), "blue it is");
        let shown = world.shown(&session);
        assert_eq!(shown.matches("the colour is blue").count(), 1, "{shown}");
        assert_eq!(world.agent.asked("session/prompt").len(), 1);
        world.agent.starts()
    };
    let (late, never) = tokio::join!(told(Says::Late), told(Says::Never));
    assert_eq!((late, never), (1, 2));
}

/// Its own task runs in another host, and maybe in another process.
#[tokio::test(flavor = "multi_thread")]
async fn what_the_journal_has_for_a_child_at_work_reaches_it_at_once() {
    let world = World::new(FakeAgent::default());
    let (host, task) = (world.host(), TaskId::from_random(1));
    let session = child(&world, &task).await;
    let prompt = plain::prompt(task.prompt(0), LISTENS);
    host.prompt(&session, prompt).await.expect("it is taken");
    until("session/prompt is asked", || {
        !world.agent.asked("session/prompt").is_empty()
    })
    .await;
    let delivered = world.journal().deliver(&session, blue(&task)).await;
    assert_eq!(delivered, Ok(Delivery::Taken));
    let name = task.prompt(0);
    let end = timeout(Duration::from_secs(60), ended(&host, &session, &name)).await;
    assert_eq!(said(&end.expect("it ends")), "blue it is");
}

/// Nobody is left with a question that the agent does not ask any more.
#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_is_taken_back_needs_no_answer() {
    let world = World::new(FakeAgent::default());
    let (host, task) = (world.host(), TaskId::from_random(1));
    let session = child(&world, &task).await;
    let mut events = host.subscribe();
    let prompt = plain::prompt(task.prompt(0), TAKES_BACK);
    host.prompt(&session, prompt).await.expect("it is taken");
    let name = task.prompt(0);
    let end = timeout(Duration::from_secs(60), ended(&host, &session, &name)).await;
    assert_eq!(said(&end.expect("it ends")), "I did without");
    let mut asked = None;
    loop {
        let next = timeout(Duration::from_secs(60), events.next()).await;
        let Some(Report::Session(_, event)) = next.expect("it is told") else {
            panic!("the host has ended");
        };
        let SessionEvent::Observed { what, .. } = event else {
            continue;
        };
        match what {
            Observation::Asked { id, .. } => asked = Some(id),
            Observation::Answered { id } => {
                assert_eq!(Some(id), asked);
                return;
            }
            _ => {}
        }
    }
}

/// A child that waits for tasks of its own keeps no process for that, and ends when they have.
#[tokio::test(flavor = "multi_thread")]
async fn a_child_that_waits_for_its_own_tasks_needs_no_process() {
    let world = World::new(FakeAgent::default());
    let (host, task) = (world.host(), TaskId::from_random(1));
    let session = child(&world, &task).await;
    let below = world.launched(&session, TaskId::from_random(2)).await;
    let prompt = plain::prompt(task.prompt(0), "Count the files");
    host.prompt(&session, prompt).await.expect("it is taken");
    let closed = async {
        until("session/close is asked", || {
            !world.agent.asked("session/close").is_empty()
        })
        .await;
    };
    let closed = timeout(Duration::from_secs(30), closed).await;
    assert_eq!(closed, Ok(()), "its process goes");
    let seen = host.inspect(&session, &task.prompt(0)).await;
    assert_eq!(seen.expect("known").standing, Standing::Working);

    world.task_ended(below).await;
    let end = ended(&host, &session, &task.prompt(0)).await;
    assert!(!said(&end).is_empty());
    assert_eq!(world.agent.starts(), 1);
}

/// A prompt on which the agent works until it is stopped.
fn hanging() -> &'static str {
    let mut script = SCRIPT.iter();
    let hangs = script.find(|(_, does)| matches!(does, Does::CallAndHang));
    hangs.expect("a prompt of the script").0
}

/// A skill that limits its tools is not given to an agent that cannot be held to that.
#[tokio::test(flavor = "multi_thread")]
async fn a_skill_that_limits_its_tools_is_refused() {
    let world = World::new(FakeAgent::default());
    let task = TaskId::from_random(1);
    let terms = Terms {
        tools: asyncagents_core::agent::Tools {
            only: Some(Vec::new()),
            ..Default::default()
        },
        skill: "review".to_owned(),
        iterations: 5,
        retries: 0,
        iteration_time: None,
        model: None,
        effort: None,
    };
    let new = NewSession {
        role: Some(Role {
            terms,
            instructions: String::new(),
        }),
        ..plain::new_session(&task, &PARENT.into())
    };
    let refused = world.host().create(new).await.expect_err("it is refused");
    let expected = "the host refuses: a skill limits the tools of this task, and fake cannot be \
                    held to that; leave `host` out";
    assert_eq!(refused.to_string(), expected);
}

/// The rules decide before anybody is asked.
struct Rules(Verdict);

impl Judge for Rules {
    fn judge(&self, call: &AskedCall) -> Verdict {
        assert_eq!((call.kind, &*call.target), (Some(Kind::Run), "make it"));
        self.0.clone()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_answer_without_asking() {
    let denied = Verdict::Deny("a rule forbids it".to_owned());
    for (verdict, answer) in [(Verdict::Allow, "made"), (denied, "I may not")] {
        let world = World::new(FakeAgent::default()).judged_by(Rules(verdict));
        let (host, task) = (world.host(), TaskId::from_random(1));
        let session = child(&world, &task).await;
        let prompt = plain::prompt(task.prompt(0), ASKS);
        host.prompt(&session, prompt).await.expect("it is taken");
        let end = ended(&host, &session, &task.prompt(0)).await;
        assert_eq!(said(&end), answer);
    }
}

/// Whoever follows it knows that it asks, also when another of its calls has ended.
#[tokio::test(flavor = "multi_thread")]
async fn a_question_is_open_until_it_is_answered() {
    let world = World::new(FakeAgent::default());
    let (host, task) = (world.host(), TaskId::from_random(1));
    let session = child(&world, &task).await;
    let mut events = host.subscribe();
    let prompt = plain::prompt(task.prompt(0), &format!("{ASKS} {BESIDE}"));
    host.prompt(&session, prompt).await.expect("it is taken");
    let mut progress = Progress::default();
    let mut counted_while_it_asks = 0;
    let mut is_answered = false;
    let heard = async {
        while let Some(report) = events.next().await {
            let Report::Session(_, SessionEvent::Observed { what, .. }) = report else {
                continue;
            };
            progress.note(&what, Moment::from_millis(0));
            if is_answered && progress.asking.is_empty() {
                return;
            }
            let asks = progress.asking.keys().next().cloned();
            if progress.spent.turns > 0 && !is_answered {
                counted_while_it_asks = progress.spent.turns;
                let name = asks.expect("it still asks");
                let taken = host.answer(&session, &name, Reply::Once).await;
                assert_eq!(taken, Ok(Answered::Taken));
                is_answered = true;
            }
        }
    };
    timeout(Duration::from_secs(60), heard)
        .await
        .expect("answered");
    assert_eq!(
        counted_while_it_asks, 1,
        "what it uses is counted meanwhile"
    );
    let end = ended(&host, &session, &task.prompt(0)).await;
    assert_eq!(said(&end), "made");
}

/// Our tools are called on another way than that on which an agent tells what it does.
#[tokio::test(flavor = "multi_thread")]
async fn a_fork_has_what_was_read_before_it_was_launched() {
    let world = World::new(FakeAgent::default());
    let (host, task) = (world.host(), TaskId::from_random(1));
    let session = child(&world, &task).await;
    let prompt = plain::prompt(task.prompt(0), LAUNCHES);
    host.prompt(&session, prompt).await.expect("it is taken");
    until("it works", || {
        world.agent.asked("session/prompt").len() == 1
    })
    .await;
    let plan = Plan::default();
    let mut forked = Box::pin(host.recent(&session, &plan));
    let early = timeout(Duration::from_millis(50), &mut forked).await;
    assert!(early.is_err(), "it has not told of its launch");
    let word = Notice {
        id: task.message(1),
        message: Message {
            visible: "go".to_owned(),
            hidden: String::new(),
        },
    };
    host.deliver(&session, word).await.expect("it is told");
    let recent = forked.await.expect("read");
    let said = format!("{:?}", recent.transcript);
    assert!(said.contains("dry"), "{said}");
    host.abort(&session).await.expect("stopped");
}

fn hooked(hook: Hook) -> World {
    World::new(FakeAgent::with(Abilities {
        hook,
        ..Abilities::default()
    }))
}

/// The question that a session has open.
pub(crate) async fn question(
    host: &AgentHost,
    session: &SessionId,
    prompt: &PostId,
) -> (String, Question) {
    let asked = async {
        loop {
            let seen = host.inspect(session, prompt).await.expect("known");
            if let Some(open) = seen.asking.and_then(|open| open.into_iter().next()) {
                return open;
            }
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(Duration::from_secs(60), asked)
        .await
        .expect("it asks")
}

/// An agent that asks nobody by the protocol asks by its hook: by the rules, and then a person, whose
/// words it is told.
#[tokio::test(flavor = "multi_thread")]
async fn a_hook_asks_as_the_protocol_does() {
    let denied = Verdict::Deny("a rule forbids it".to_owned());
    for (verdict, expected) in [(Verdict::Allow, "made"), (denied, "a rule forbids it")] {
        let world = hooked(Hook::Runs).judged_by(Rules(verdict));
        let (host, task) = (world.host(), TaskId::from_random(1));
        let session = child(&world, &task).await;
        let prompt = plain::prompt(task.prompt(0), ASKS);
        host.prompt(&session, prompt).await.expect("it is taken");
        let end = ended(&host, &session, &task.prompt(0)).await;
        assert!(said(&end).contains(expected), "{end:?}");
    }
    let words = Some("use the mock".to_owned());
    let rejected = Reply::Reject { text: words };
    for (reply, expected) in [(Reply::Once, "made"), (rejected, "use the mock")] {
        let world = hooked(Hook::Runs);
        let (host, task) = (world.host(), TaskId::from_random(1));
        let session = child(&world, &task).await;
        let prompt = plain::prompt(task.prompt(0), ASKS);
        host.prompt(&session, prompt).await.expect("it is taken");
        let (name, question) = question(&host, &session, &task.prompt(0)).await;
        assert!(question.text.contains("make it"), "{question:?}");
        let taken = host.answer(&session, &name, reply).await;
        assert_eq!(taken, Ok(Answered::Taken));
        let end = ended(&host, &session, &task.prompt(0)).await;
        assert!(said(&end).contains(expected), "{end:?}");
    }
}

/// One that makes a call without its hook is stopped, and the task says why: a hook may have been
/// killed by what the agent runs, or a new version may not run it.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_goes_on_without_its_hook_is_stopped() {
    let world = hooked(Hook::IsIgnored);
    let (host, task) = (world.host(), TaskId::from_random(1));
    let session = child(&world, &task).await;
    let prompt = plain::prompt(task.prompt(0), ASKS);
    host.prompt(&session, prompt).await.expect("it is taken");
    let end = ended(&host, &session, &task.prompt(0)).await;
    let Standing::Done {
        outcome: Outcome::Failed { why },
        ..
    } = &end
    else {
        panic!("it has not failed: {end:?}");
    };
    assert!(
        why.starts_with("fake: it has made a call that it did not ask about"),
        "{why}"
    );
    assert_eq!(world.agent.starts(), 1, "it is not tried again");
}

/// Who may change nothing has nobody change it: no tools of ours.
#[tokio::test(flavor = "multi_thread")]
async fn a_child_that_only_reads_launches_nothing() {
    for (agent, delegates) in [("general", true), ("explore", false)] {
        let world = World::new(FakeAgent::default());
        let task = TaskId::from_random(1);
        let new = NewSession {
            agent: agent.into(),
            may_delegate: true,
            ..plain::new_session(&task, &PARENT.into())
        };
        let session = world.host().create(new).await.expect("a session");
        assert_eq!(
            world.session(&session).await.delegates,
            delegates,
            "{agent}"
        );
    }
}

/// Rules as a user may have them.
struct OwnRules;

impl Judge for OwnRules {
    fn judge(&self, call: &AskedCall) -> Verdict {
        match &*call.target {
            "secret" => Verdict::Deny("a rule forbids it".to_owned()),
            "Cargo.toml" => Verdict::AskEach,
            _ => Verdict::Ask,
        }
    }
}

/// What is always allowed is remembered here, for this task: the agent is told to do it once, so that
/// it asks each time, and each time the user's rules come first.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_always_allowed_is_not_handed_to_the_agent() {
    const EDITS: &str = "every change to files of its folder, in this task";
    const THIS: &str = "exactly this, in this task";
    let world = World::new(FakeAgent::default()).judged_by(OwnRules);
    let (host, task) = (world.host(), TaskId::from_random(1));
    let session = child(&world, &task).await;
    let change = |file: &str| format!("{CHANGES} {file} now");
    let prompts = [
        (change("a.rs"), Some(EDITS), "made"),
        (change("b.rs"), None, "made"),
        (change("secret"), None, "I may not"),
        (change("Cargo.toml"), Some(THIS), "made"),
        (change("Cargo.toml"), None, "made"),
        (ASKS.to_owned(), Some(THIS), "made"),
        (ASKS.to_owned(), None, "made"),
    ];
    for (run, (prompt, offered, answer)) in (0..).zip(prompts) {
        let name = task.prompt(run);
        let prompt = plain::prompt(name.clone(), &prompt);
        host.prompt(&session, prompt).await.expect("it is taken");
        let mut always = None;
        let end = loop {
            let seen = host.inspect(&session, &name).await.expect("known");
            if seen.standing != Standing::Working {
                break seen.standing;
            }
            for (open, question) in seen.asking.unwrap_or_default() {
                let line = question.text.lines().nth(1).unwrap_or_default().to_owned();
                always = Some(line);
                let taken = host.answer(&session, &open, Reply::Always).await;
                assert_eq!(taken, Ok(Answered::Taken));
            }
            tokio::task::yield_now().await;
        };
        assert_eq!(said(&end), answer);
        let offered = offered.map(|covers| format!("(always: {covers})"));
        assert_eq!(always, offered, "prompt {run}");
    }
}

/// What an agent wants to know is a form, and the answer has its values.
#[tokio::test(flavor = "multi_thread")]
async fn a_form_is_asked_and_filled_in() {
    let world = World::new(FakeAgent::default());
    let (host, task) = (world.host(), TaskId::from_random(1));
    let session = child(&world, &task).await;
    let prompt = plain::prompt(task.prompt(0), CHOOSES);
    host.prompt(&session, prompt).await.expect("it is taken");
    let (name, question) = question(&host, &session, &task.prompt(0)).await;
    assert_eq!(question.text, "Which colour?");
    let QuestionKind::Form(fields) = &question.kind else {
        panic!("no form: {question:?}");
    };
    assert_eq!(fields[0].options, ["red", "blue"]);
    let values = BTreeMap::from([("colour".to_owned(), vec!["blue".to_owned()])]);
    let taken = host.answer(&session, &name, Reply::Values(values)).await;
    assert_eq!(taken, Ok(Answered::Taken));
    let end = ended(&host, &session, &task.prompt(0)).await;
    assert_eq!(said(&end), "It is blue");
}

/// A process that was stopped says nothing, and nor does one that waits for nothing: that is for the
/// limit of the stall to end. A call may take long without a word.
#[tokio::test(flavor = "multi_thread")]
async fn only_a_call_at_work_is_a_sign_of_life_of_a_silent_agent() {
    let world = World::new(FakeAgent::default());
    let (silent, at_work) = (TaskId::from_random(1), TaskId::from_random(2));
    let mut events = world.host().subscribe();
    let mut sessions = Vec::new();
    for (task, prompt) in [(&silent, LISTENS), (&at_work, hangs())] {
        let session = child(&world, task).await;
        let prompt = plain::prompt(task.prompt(0), prompt);
        let host = world.host();
        host.prompt(&session, prompt).await.expect("it is taken");
        sessions.push(session);
    }
    // The silent one has begun before, and would have said so before.
    let mut signs = Vec::new();
    while !signs.contains(&sessions[1]) {
        let report = events.next().await.expect("the host lives");
        if let Report::Session(session, SessionEvent::Alive) = report {
            signs.push(session);
        }
    }
    assert!(!signs.contains(&sessions[0]), "{signs:?}");
}
