//! What a child asks is told to those above it, answered by those who may, and taken once.

use std::time::Duration;

use asyncagents_core::{
    answer::AnswerState,
    host_ref::HostSetup,
    id::TaskId,
    port::Host,
    question::{Field, Question, QuestionKind, Reply},
    refusal::Refusal,
    request::{AnswerRequest, Caller},
    task::Status,
};
use asyncagents_runtime::{AnswerGiven, Problem};
use asyncagents_testkit::scripted_host::{Call, Child, Line, Script, ScriptedHost, Step};
use rstest::rstest;

use crate::harness::{Harness, Process, asks as args, key, seconds, session, until};

fn permission() -> Question {
    Question::permission("permission for bash make")
}

fn colour() -> Question {
    Question {
        text: "Which colour?".to_owned(),
        kind: QuestionKind::Form(vec![Field {
            key: "q0".to_owned(),
            text: "Which colour?".to_owned(),
            options: vec!["red".to_owned(), "blue".to_owned()],
            custom: false,
            multiple: false,
        }]),
    }
}

/// Asks these one after the other, and then says the last answer.
fn asks(questions: impl IntoIterator<Item = Question>) -> Vec<Step> {
    let asked = questions.into_iter().map(Step::AskAndWait);
    let said = Step::Answer("answered: {answer}".to_owned());
    asked.chain([said]).collect()
}

fn script(questions: impl IntoIterator<Item = Question>) -> Script {
    Script {
        children: vec![Child {
            when: None,
            steps: asks(questions),
        }],
        ..crate::harness::usual()
    }
}

async fn until_asking(process: &Process, task: &TaskId) {
    until(&format!("{task} asks"), async || {
        !process.look(task).await.progress.asking.is_empty()
    })
    .await;
}

async fn answer_as(
    process: &Process,
    caller: &Caller,
    task: &TaskId,
    decision: Option<&str>,
    text: Option<&str>,
) -> Result<AnswerGiven, Problem> {
    let text = text.map(str::to_owned);
    let request = AnswerRequest::new(task.as_str(), decision, text, [].into())?;
    let progress = process.look(task).await.progress;
    let oldest = progress.oldest_question();
    let question = oldest.map(|(id, open)| open.question.code(id));
    let request = AnswerRequest {
        question,
        ..request
    };
    process.manager.answer(caller, request).await
}

/// The same by someone who does not say which question is meant.
async fn permit_unnamed(process: &Process, task: &TaskId) -> Result<AnswerGiven, Problem> {
    let request = AnswerRequest::new(task.as_str(), Some("once"), None, [].into())?;
    process.manager.answer(&Caller::Person, request).await
}

async fn permit(process: &Process, task: &TaskId) -> Result<AnswerGiven, Problem> {
    answer_as(process, &Caller::Person, task, Some("once"), None).await
}

/// What a child was answered, as its session has it.
fn replies(harness: &Harness, task: &TaskId) -> Vec<String> {
    let lines = harness.child(task).into_iter();
    let replies = lines.filter_map(|line| match line {
        Line::Replied { reply, .. } => Some(reply),
        _ => None,
    });
    replies.collect()
}

#[rstest]
#[case(permission(), Some("once"), None, "answered: once")]
#[case(permission(), Some("always"), None, "answered: always")]
#[case(
    permission(),
    Some("reject"),
    Some("use the mock"),
    "answered: reject: use the mock"
)]
#[case(colour(), None, Some("BLUE"), "answered: blue")]
#[case(colour(), Some("reject"), None, "answered: reject")]
#[tokio::test(start_paused = true)]
async fn a_person_answers_what_a_child_asks(
    #[case] question: Question,
    #[case] decision: Option<&str>,
    #[case] text: Option<&str>,
    #[case] expected: &str,
) {
    let harness = Harness::new(script([question.clone()]));
    let process = harness.start().await;
    let task = process.launch("build").await;
    until_asking(&process, &task).await;
    let given = answer_as(&process, &Caller::Person, &task, decision, text).await;
    let given = given.expect("answered");
    assert_eq!(
        (given.asked, given.state),
        (question.text, AnswerState::Taken)
    );
    let report = process.wait(&task).await;
    assert_eq!(report.answer.as_deref(), Some(expected));
    assert_eq!(replies(&harness, &task).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_model_rejects_and_answers_and_permits_only_where_its_user_lets_it() {
    for may_permit in [false, true] {
        let harness = Harness::new(script([permission(), permission(), colour()]))
            .with(|settings| settings.model_may_permit = may_permit);
        let process = harness.start().await;
        let task = process.launch("build").await;
        until_asking(&process, &task).await;
        let model = session("main");
        let always = answer_as(&process, &model, &task, Some("always"), None).await;
        let refused = |given: &Result<AnswerGiven, Problem>| {
            matches!(
                given,
                Err(Problem::Refused(Refusal::OnlyAPersonPermits { .. }))
            )
        };
        assert!(refused(&always), "{always:?}");
        let once = answer_as(&process, &model, &task, Some("once"), None).await;
        assert_eq!(refused(&once), !may_permit, "{once:?}");
        if !may_permit {
            permit(&process, &task).await.expect("a person may");
        }
        for (decision, text) in [(Some("reject"), None), (None, Some("red"))] {
            until_asking(&process, &task).await;
            let given = answer_as(&process, &model, &task, decision, text).await;
            assert_eq!(given.expect("answered").state, AnswerState::Taken);
        }
        process.settled().await;
        assert_eq!(replies(&harness, &task), ["once", "reject", "red"]);
    }
}

/// What a task was refused it does not get by a task of its own, which it lets do it.
#[tokio::test(start_paused = true)]
async fn a_task_permits_nothing_to_its_own_tasks() {
    let harness =
        Harness::new(script([permission()])).with(|settings| settings.model_may_permit = true);
    let process = harness.start().await;
    let child = process.launch("build").await;
    until_asking(&process, &child).await;
    let in_child = ScriptedHost::session_of(&child);
    let grandchild = process.launch_from(in_child.as_str(), "build").await;
    until_asking(&process, &grandchild).await;
    let in_child = session(in_child.as_str());
    let once = answer_as(&process, &in_child, &grandchild, Some("once"), None).await;
    let refused = Err(Problem::Refused(Refusal::OnlyAPersonPermits {
        always: false,
        question: permission().text,
    }));
    assert_eq!(once, refused);
    let model = session("main");
    let once = answer_as(&process, &model, &grandchild, Some("once"), None).await;
    assert_eq!(once.expect("answered").state, AnswerState::Taken);
    process.wait(&grandchild).await;
    assert_eq!(replies(&harness, &grandchild), ["once"]);
}

#[tokio::test(start_paused = true)]
async fn nobody_answers_for_a_task_that_is_not_below_them() {
    let harness = Harness::new(script([permission()]));
    let process = harness.start().await;
    let task = process.launch("build").await;
    let sibling = process.launch("other").await;
    until_asking(&process, &task).await;
    until_asking(&process, &sibling).await;
    for who in [&sibling, &task] {
        let caller = session(ScriptedHost::session_of(who).as_str());
        let given = answer_as(&process, &caller, &task, Some("reject"), None).await;
        let refused = matches!(given, Err(Problem::Refused(Refusal::NotBelow { .. })));
        assert!(refused, "{given:?}");
    }
    assert_eq!(replies(&harness, &task), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn an_answer_to_nothing_or_of_the_wrong_kind_is_refused() {
    let harness = Harness::new(script([colour()]));
    let process = harness.start().await;
    let task = process.launch("build").await;
    until_asking(&process, &task).await;
    let once = permit(&process, &task).await;
    let unfit = matches!(once, Err(Problem::Refused(Refusal::Unfit { .. })));
    assert!(unfit, "{once:?}");
    let given = answer_as(&process, &Caller::Person, &task, None, Some("red")).await;
    given.expect("answered");
    process.settled().await;
    let again = answer_as(&process, &Caller::Person, &task, None, Some("red")).await;
    let nothing = matches!(again, Err(Problem::Refused(Refusal::NotAsking { .. })));
    assert!(nothing, "{again:?}");
}

#[tokio::test(start_paused = true)]
async fn who_answers_second_is_told_so() {
    let harness = Harness::new(script([permission(), colour()]));
    let process = harness.start().await;
    let task = process.launch("build").await;
    until_asking(&process, &task).await;
    // Somebody answers in the host's own window, and its report is not heard.
    harness.host.faults().mute = true;
    let child = ScriptedHost::session_of(&task);
    let theirs = Host::answer(&harness.host, &child, "question.1", Reply::Always).await;
    theirs.expect("taken");
    let given = permit(&process, &task)
        .await
        .expect("the journal does not know");
    let why = "it had been answered meanwhile".to_owned();
    assert_eq!(given.state, AnswerState::NotTaken(why));
    assert_eq!(replies(&harness, &task), ["always"]);
}

#[tokio::test(start_paused = true)]
async fn a_question_that_stays_open_is_told_once_to_the_parent_and_to_the_top() {
    let harness = Harness::new(Script {
        children: vec![
            Child {
                when: Some("ask".to_owned()),
                steps: asks([permission()]),
            },
            Child {
                when: None,
                steps: vec![Step::Hang],
            },
        ],
        ..crate::harness::usual()
    })
    .with(|settings| settings.limits.stall = seconds(10_000));
    let process = harness.start().await;
    let child = process.launch("wait").await;
    process.until_prompted(&child).await;
    let in_child = ScriptedHost::session_of(&child);
    let grandchild = process.launch_from(in_child.as_str(), "ask").await;
    until_asking(&process, &grandchild).await;
    tokio::time::sleep(seconds(110)).await;
    assert_eq!(harness.told("main"), []);
    tokio::time::sleep(seconds(600)).await;
    for told in [harness.told("main"), harness.told(in_child.as_str())] {
        assert_eq!(told.len(), 1, "{told:?}");
        let (visible, hidden) = &told[0];
        assert!(visible.contains("permission for bash make"), "{visible}");
        assert!(visible.contains("asyncagents answer task_"), "{visible}");
        assert!(hidden.contains("decision=\"reject\""), "{hidden}");
    }
    permit(&process, &grandchild).await.expect("answered");
    let answered = process.wait(&grandchild).await.answer;
    assert_eq!(answered.as_deref(), Some("answered: once"));
}

/// Who follows a notice answers what the notice is about, or nothing.
#[tokio::test(start_paused = true)]
async fn a_notice_that_comes_too_late_answers_no_other_question() {
    let write = Question::permission("permission for write a.txt");
    let harness = Harness::new(script([permission(), write]));
    let process = harness.start().await;
    let task = process.launch("build").await;
    until_asking(&process, &task).await;
    until("the parent is told", async || {
        harness.told("main").len() == 1
    })
    .await;
    let (visible, hidden) = harness.told("main").remove(0);
    let (_, named) = visible.split_once("--question ").expect("it is named");
    let named: String = named.chars().take_while(char::is_ascii_hexdigit).collect();
    assert!(
        hidden.contains(&format!("question=\"{named}\"")),
        "{hidden}"
    );
    // Somebody answers in the host's own window, and the child asks for something else.
    let child = ScriptedHost::session_of(&task);
    let theirs = Host::answer(
        &harness.host,
        &child,
        "question.1",
        Reply::Reject { text: None },
    );
    theirs.await.expect("taken");
    until("it asks again", async || {
        let open = process.look(&task).await.progress.asking;
        open.contains_key("question.2")
    })
    .await;
    let request = AnswerRequest::new(task.as_str(), Some("once"), None, [].into());
    let request = AnswerRequest {
        question: Some(named),
        ..request.expect("an answer")
    };
    let given = process.manager.answer(&Caller::Person, request).await;
    let refused = given.expect_err("it is not open any more").to_string();
    assert!(refused.contains("permission for write a.txt"), "{refused}");
    // Nor does an answer without a name, however long the other one is open by now.
    tokio::time::sleep(seconds(60)).await;
    let unnamed = permit_unnamed(&process, &task).await;
    assert!(unnamed.is_err(), "{unnamed:?}");
    assert_eq!(replies(&harness, &task), ["reject"]);
}

#[tokio::test(start_paused = true)]
async fn what_was_asked_only_just_now_is_permitted_by_its_name_alone() {
    let harness = Harness::new(script([permission(), colour()]));
    let process = harness.start().await;
    let task = process.launch("build").await;
    until_asking(&process, &task).await;
    let refused = permit_unnamed(&process, &task).await;
    let refused = refused.expect_err("nobody can have seen it");
    let unclear = matches!(refused, Problem::Refused(Refusal::WhichQuestion { .. }));
    assert!(unclear, "{refused}");
    assert!(
        refused.to_string().contains(": permission for bash make"),
        "{refused}"
    );
    tokio::time::sleep(seconds(5)).await;
    let given = permit_unnamed(&process, &task).await.expect("answered");
    assert_eq!(given.state, AnswerState::Taken);
    assert_eq!(replies(&harness, &task), ["once"]);
}

/// A model may reject what a person looks at, and have the child ask for something else.
#[tokio::test(start_paused = true)]
async fn what_took_the_place_of_another_question_is_permitted_by_its_name_alone() {
    let write = Question::permission("permission for write a.txt");
    let harness = Harness::new(script([permission(), write]));
    let process = harness.start().await;
    let task = process.launch("build").await;
    until_asking(&process, &task).await;
    let rejected = answer_as(&process, &session("main"), &task, Some("reject"), None).await;
    rejected.expect("a model may reject");
    until("it asks for something else", async || {
        let open = process.look(&task).await.progress.asking;
        open.contains_key("question.2")
    })
    .await;
    tokio::time::sleep(seconds(60)).await;
    let refused = permit_unnamed(&process, &task).await;
    let refused = refused.expect_err("the first may be meant").to_string();
    assert!(refused.contains("permission for write a.txt"), "{refused}");
    permit(&process, &task).await.expect("by its name");
    assert_eq!(replies(&harness, &task), ["reject", "once"]);
}

#[tokio::test(start_paused = true)]
async fn a_question_that_is_answered_in_time_is_never_told() {
    let harness = Harness::new(script([permission()]));
    let process = harness.start().await;
    let task = process.launch("build").await;
    until_asking(&process, &task).await;
    tokio::time::sleep(seconds(60)).await;
    permit(&process, &task).await.expect("answered");
    process.settled().await;
    tokio::time::sleep(seconds(600)).await;
    let told = harness.told("main");
    assert_eq!(told.len(), 1, "only that it has ended: {told:?}");
}

/// The parent can be told only much later, and by then there is nothing to answer.
#[tokio::test(start_paused = true)]
async fn a_parent_that_is_busy_is_not_told_of_what_was_answered_meanwhile() {
    let harness = Harness::new(script([permission(), colour()]));
    let process = harness.start().await;
    harness.host.faults().busy.insert("main".into());
    let task = process.launch("build").await;
    until_asking(&process, &task).await;
    tokio::time::sleep(seconds(300)).await;
    permit(&process, &task).await.expect("answered");
    harness.host.faults().busy.clear();
    tokio::time::sleep(seconds(90)).await;
    assert_eq!(harness.told("main"), []);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_nobody_answers_ends_with_that_reason() {
    let harness = Harness::new(script([permission()]));
    let process = harness.start().await;
    let task = process.launch("build").await;
    process.settled().await;
    let task = process.look(&task).await;
    assert_eq!(task.status(), Status::Error);
    let why = format!("{:?}", task.state);
    let said = "nobody answered what it asked: permission for bash make";
    assert!(why.contains(said), "{why}");
}

/// A session whose launches say what becomes of questions.
fn session_that_says(name: &str, unanswered: &str) -> Caller {
    let mut host = HostSetup::from(key());
    host.settings.json = unanswered.into();
    Caller::Session {
        session: name.into(),
        host,
        outside: None,
        message: None,
    }
}

async fn launch_saying(process: &Process, unanswered: &str, from: &str, prompt: &str) -> TaskId {
    let caller = session_that_says(from, unanswered);
    let accepted = process.manager.task(&caller, args(prompt)).await;
    accepted.expect("launched").shown.task.id
}

#[tokio::test(start_paused = true)]
async fn what_a_task_asks_that_was_launched_where_nobody_answers_is_rejected_at_once() {
    let harness = Harness::new(script([permission(), colour(), permission()]));
    let process = harness.start().await;
    let task = launch_saying(&process, "refuse", "main", "build").await;
    let answer = process.wait(&task).await.answer.expect("it went on");
    assert!(answer.contains("Nobody can be asked here"), "{answer}");
    let replies = replies(&harness, &task);
    assert_eq!(replies.len(), 3, "{replies:?}");
    let mut rejected = replies.iter();
    assert!(
        rejected.all(|reply| reply.starts_with("reject: Nobody")),
        "{replies:?}"
    );
    assert_eq!(harness.told("main"), [], "nobody is asked");
}

/// What is launched by a task says nothing itself; a person's launch below one does.
#[tokio::test(start_paused = true)]
async fn the_nearest_launch_above_a_task_says_what_becomes_of_its_questions() {
    for (above, own, is_rejected) in [
        ("refuse", "", true),
        ("refuse", "wait", false),
        ("wait", "", false),
        ("wait", "refuse", true),
        ("", "", false),
    ] {
        let harness = Harness::new(Script {
            children: vec![
                Child {
                    when: Some("ask".to_owned()),
                    steps: asks([permission()]),
                },
                Child {
                    when: None,
                    steps: vec![Step::Hang],
                },
            ],
            ..crate::harness::usual()
        });
        let process = harness.start().await;
        let child = launch_saying(&process, above, "main", "wait").await;
        process.until_prompted(&child).await;
        let in_child = ScriptedHost::session_of(&child);
        let grandchild = launch_saying(&process, own, in_child.as_str(), "ask").await;
        until("it asks or is done", async || {
            let task = process.look(&grandchild).await;
            !task.is_live() || !task.progress.asking.is_empty()
        })
        .await;
        tokio::time::sleep(seconds(60)).await;
        let rejected = replies(&harness, &grandchild).len();
        assert_eq!(rejected, usize::from(is_rejected), "{above} {own}");
    }
}

/// The worker dies before it has heard of the question, or while its answer does not get through.
#[rstest]
#[case::unheard(|harness: &Harness| harness.host.faults().mute = true)]
#[case::unsent(|harness: &Harness| { harness.host.faults().fail.insert(Call::Answer, 1_000); })]
#[tokio::test(start_paused = true)]
async fn the_next_worker_rejects_what_the_last_one_has_not(#[case] fault: fn(&Harness)) {
    let harness = Harness::new(script([permission()]));
    let process = harness.start().await;
    fault(&harness);
    let task = launch_saying(&process, "refuse", "main", "build").await;
    process.until_prompted(&task).await;
    tokio::time::sleep(seconds(3)).await;
    process.worker.kill();
    harness.host.faults().mute = false;
    harness.host.faults().fail.clear();
    let process = harness.start().await;
    let answer = process.wait(&task).await.answer.expect("it went on");
    assert!(answer.contains("Nobody can be asked here"), "{answer}");
    assert_eq!(replies(&harness, &task).len(), 1);
}

/// The host does what it is asked, whatever it answers.
#[rstest]
#[case::lost(|harness: &Harness| { harness.host.faults().lose_answer.insert(Call::Answer, 1); }, false)]
#[case::failing(|harness: &Harness| { harness.host.faults().fail.insert(Call::Answer, 3); }, true)]
#[tokio::test(start_paused = true)]
async fn an_answer_is_taken_once_though_the_host_fails(
    #[case] fault: fn(&Harness),
    #[case] taken: bool,
) {
    let harness = Harness::new(script([permission()]));
    let process = harness.start().await;
    let task = process.launch("build").await;
    until_asking(&process, &task).await;
    fault(&harness);
    let given = permit(&process, &task).await.expect("answered");
    // The child had it, and was done with it before the host was asked again.
    let perhaps = "the run ended before it was confirmed".to_owned();
    let expected = if taken {
        AnswerState::Taken
    } else {
        AnswerState::NotTaken(perhaps)
    };
    assert_eq!(given.state, expected);
    process.settled().await;
    assert_eq!(replies(&harness, &task), ["once"]);
    assert_eq!(process.status(&task).await, Status::Completed);
}

/// Whether it was this answer or another, nobody can say who has lost the host's word for it.
#[tokio::test(start_paused = true)]
async fn an_answer_whose_confirmation_is_lost_is_not_claimed_to_be_taken() {
    let harness = Harness::new(script([permission(), colour()]));
    let process = harness.start().await;
    let task = process.launch("build").await;
    until_asking(&process, &task).await;
    harness.host.faults().lose_answer.insert(Call::Answer, 1);
    let given = permit(&process, &task).await.expect("answered");
    let perhaps = "it had been answered meanwhile, perhaps by this answer".to_owned();
    assert_eq!(given.state, AnswerState::NotTaken(perhaps));
    assert_eq!(replies(&harness, &task), ["once"]);
}

/// Whoever was told that it is on its way can see later that it did not get there.
#[tokio::test(start_paused = true)]
async fn an_answer_that_does_not_reach_its_question_is_shown_as_not_taken() {
    let harness = Harness::new(script([permission()]));
    let process = harness.start().await;
    let task = process.launch("build").await;
    until_asking(&process, &task).await;
    harness.host.faults().fail.insert(Call::Answer, 1_000);
    let given = permit(&process, &task).await.expect("answered");
    assert_eq!(given.state, AnswerState::OnItsWay);
    assert_eq!(process.output(&task).await.not_taken, []);
    let parent = session("main");
    let cancelled = process.manager.cancel(&parent, task.as_str());
    cancelled.await.expect("cancelled");
    process.settled().await;
    let not_taken = process.output(&task).await.not_taken;
    let [lost] = not_taken.as_slice() else {
        panic!("{not_taken:?}");
    };
    assert_eq!(lost.asked, "permission for bash make");
    assert_eq!(lost.reply, Reply::Once);
    assert!(lost.why.starts_with("the run ended before"), "{lost:?}");
}

#[tokio::test(start_paused = true)]
async fn a_caller_whose_answer_is_not_confirmed_soon_is_told_that_it_is_on_its_way() {
    let harness = Harness::new(script([permission()]));
    let process = harness.start().await;
    let task = process.launch("build").await;
    until_asking(&process, &task).await;
    harness.host.faults().slow = seconds(30);
    let given = permit(&process, &task).await.expect("answered");
    assert_eq!(given.state, AnswerState::OnItsWay);
    harness.host.faults().slow = seconds(0);
    process.settled().await;
    assert_eq!(replies(&harness, &task), ["once"]);
}

/// The host does not take the first answer yet; the second comes too late whatever it says.
#[tokio::test(start_paused = true)]
async fn whoever_says_no_first_is_not_overruled() {
    let harness = Harness::new(script([permission()]));
    let process = harness.start().await;
    let task = process.launch("build").await;
    until_asking(&process, &task).await;
    harness.host.faults().fail.insert(Call::Answer, 6);
    let no = answer_as(&process, &Caller::Person, &task, Some("reject"), None).await;
    assert_eq!(no.expect("taken down").state, AnswerState::OnItsWay);
    let yes = permit(&process, &task).await;
    let late = matches!(yes, Err(Problem::Refused(Refusal::BeingAnswered { .. })));
    assert!(late, "{yes:?}");
    process.settled().await;
    assert_eq!(replies(&harness, &task), ["reject"]);
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_dies_while_it_answers_leaves_that_to_the_next() {
    let harness = Harness::new(script([permission()]));
    let first = harness.start().await;
    let task = first.launch("build").await;
    until_asking(&first, &task).await;
    harness.host.faults().slow = seconds(60);
    let given = permit(&first, &task).await.expect("answered");
    assert_eq!(given.state, AnswerState::OnItsWay);
    assert!(harness.host.faults().asked.contains_key(&Call::Answer));
    drop(first);
    harness.host.faults().slow = seconds(0);
    let second = harness.start().await;
    second.settled().await;
    assert_eq!(replies(&harness, &task), ["once"]);
    assert_eq!(second.status(&task).await, Status::Completed);
}

/// Workers die all the time while children ask, are answered and their parents told.
#[tokio::test(start_paused = true)]
async fn everything_is_answered_and_told_once_though_workers_die_all_the_time() {
    const QUESTIONS: usize = 12;
    let harness = Harness::new(script((0..QUESTIONS).map(|_| permission()))).with(|settings| {
        settings.limits.worker_deaths = 1_000;
        settings.limits.ask = seconds(120);
        settings.limits.budget.time = None;
    });
    let mut process = harness.start().await;
    let mut tasks = Vec::new();
    for number in 0..4 {
        tasks.push(process.launch(&format!("task {number}")).await);
    }
    for round in 0..QUESTIONS as u64 {
        for task in &tasks {
            let open = format!("question.{}", round + 1);
            until("the next is asked", async || {
                process.look(task).await.progress.asking.contains_key(&open)
            })
            .await;
        }
        // Every other one stays open until the parent is told.
        if round % 2 == 0 {
            until("the parent is told", async || {
                harness.told("main").len() as u64 == (round / 2 + 1) * tasks.len() as u64
            })
            .await;
        }
        {
            let mut faults = harness.host.faults();
            faults.slow = Duration::from_millis(round * 37 % 300);
            faults.lose_answer.insert(Call::Answer, (round % 3) as u32);
            faults.lose_answer.insert(Call::Deliver, (round % 2) as u32);
        }
        for task in &tasks {
            permit(&process, task).await.expect("answered");
        }
        tokio::time::sleep(Duration::from_millis(round * 101 % 900)).await;
        process.worker.kill();
        harness.host.faults().slow = seconds(0);
        process = harness.start().await;
    }
    process.settled().await;
    for task in &tasks {
        assert_eq!(process.status(task).await, Status::Completed);
        assert_eq!(replies(&harness, task), vec!["once"; QUESTIONS]);
    }
    let told = harness.told("main");
    let asked = told.iter().filter(|(visible, _)| visible.starts_with('?'));
    assert_eq!(asked.count(), QUESTIONS / 2 * tasks.len());
    assert_eq!(harness.ends_told("main").len(), tasks.len());
}
