//! Whether a task may be launched, and what it begins with: a table, and what always holds.

use std::time::Duration;

use asyncagents_core::{
    agent::{Rule, Tools},
    budget::{Budget, Cost, Spent},
    event::{Event, Launched},
    fork::Plan,
    host_ref::HostRef,
    id::TaskId,
    launch::{Bound, Facts, launch, place},
    lifecycle::{apply, begin},
    moment::Moment,
    refusal::Refusal,
    request::{Caller, LaunchTask},
    skill::{Role, Terms},
    task::{Context, Outcome, Task},
    task_limits::TaskLimits,
};
use rstest::rstest;

const NOW: Moment = Moment::from_millis(1_000_000);

fn request() -> LaunchTask {
    LaunchTask {
        description: "one".to_owned(),
        prompt: "do it".to_owned(),
        agent: "general".into(),
        host: None,
        context: Context::Fresh,
        model: None,
        effort: None,
        budget: Budget::default(),
        role: None,
    }
}

fn session(name: &str) -> Caller {
    Caller::Session {
        session: name.into(),
        host: HostRef::from("scripted").into(),
        outside: None,
        message: None,
    }
}

fn facts(caller: &Caller, above: Option<&Task>) -> Facts {
    let id = TaskId::from_random(7);
    Facts {
        place: place(&id, caller, above, &HostRef::from("scripted")).expect("it has a session"),
        above: above.cloned(),
        launched_below: 0,
        open_batch: 3,
        from: Some("asking".into()),
        chain: "chain".into(),
        host: HostRef::from("scripted").into(),
        owner: Some("worker".into()),
        fork: Plan::default(),
    }
}

/// The terms of a skill that may use one thing only, or everything.
fn terms(skill: &str, only: &str) -> Terms {
    let rule = (!only.is_empty()).then(|| only.parse::<Rule>().expect("a rule"));
    Terms {
        skill: skill.to_owned(),
        tools: Tools {
            only: rule.map(|rule| vec![rule]),
            ..Tools::default()
        },
        iterations: 20,
        retries: 3,
        iteration_time: None,
        model: None,
        effort: None,
    }
}

/// A running task at this depth, in the session `child`.
fn working(depth: u32) -> Task {
    let asked = launch(request(), facts(&session("main"), None), &limits(9), NOW);
    let mut task = begin(TaskId::from_random(1), &asked.expect("launched"), NOW);
    task.place.depth = depth;
    let session = "child".into();
    for event in [
        Event::Started,
        Event::SessionMade { session },
        Event::Prompted,
    ] {
        apply(&mut task, &event, NOW);
    }
    task
}

fn limits(depth: u32) -> TaskLimits {
    TaskLimits {
        depth,
        spawns: 5,
        budget: Budget::default(),
        ..TaskLimits::default()
    }
}

/// Who asks.
#[derive(Debug, Clone, Copy)]
enum By {
    /// A session that is no child.
    Main,
    /// A running task at this depth.
    Depth(u32),
    /// One that was cleared while it runs.
    Cleared,
    /// One that has ended like this.
    Completed,
    Failed,
    Cancelled,
}

fn above(by: By) -> Option<Task> {
    let mut task = working(1);
    let mut end = |outcome: Outcome| {
        let ended = Event::Ended {
            outcome,
            answer: None,
            stop: false,
        };
        apply(&mut task, &ended, NOW);
    };
    match by {
        By::Main => return None,
        By::Depth(depth) => return Some(working(depth)),
        By::Cleared => apply(&mut task, &Event::Cleared, NOW),
        By::Completed => end(Outcome::Completed),
        By::Failed => end(Outcome::Failed { why: "x".into() }),
        By::Cancelled => end(Outcome::Cancelled),
    }
    Some(task)
}

#[rstest]
#[case(By::Main, 2, 0, "launched at depth 1")]
#[case(By::Main, 1, 4, "launched at depth 1")]
#[case(By::Main, 0, 0, "a task at depth 1 is refused: the limit is 0")]
#[case(By::Main, 2, 5, "5 tasks were launched below this session already")]
#[case(By::Depth(1), 2, 0, "launched at depth 2")]
#[case(By::Depth(2), 2, 0, "a task at depth 3 is refused: the limit is 2")]
#[case(By::Depth(1), 2, 5, "5 tasks were launched below this session already")]
#[case(By::Completed, 2, 0, "launched at depth 2")]
#[case(By::Failed, 2, 0, "has been stopped (error)")]
#[case(By::Cancelled, 2, 0, "has been stopped (cancelled)")]
#[case(By::Cleared, 2, 0, "has been stopped (running)")]
fn a_launch(#[case] by: By, #[case] depth: u32, #[case] launched: u64, #[case] expected: &str) {
    let above = above(by);
    let facts = Facts {
        launched_below: launched,
        ..facts(&session("child"), above.as_ref())
    };
    let told = match launch(request(), facts, &limits(depth), NOW) {
        Ok(launched) => format!("launched at depth {}", launched.place.depth),
        Err(refusal) => refusal.to_string(),
    };
    assert!(told.contains(expected), "{told}");
}

fn tokens(tokens: Option<u64>) -> Budget {
    Budget {
        tokens,
        ..Budget::default()
    }
}

/// A tenth of a budget is kept back for a last turn.
#[rstest]
#[case::unlimited(None, None, None, 0, Ok(None))]
#[case::usual(None, Some(50), None, 0, Ok(Some(50)))]
#[case::own_first(Some(80), Some(50), None, 0, Ok(Some(80)))]
#[case::what_is_left_above(None, None, Some(1_000), 300, Ok(Some(600)))]
#[case::no_more_than_left(Some(800), None, Some(1_000), 300, Ok(Some(600)))]
#[case::less_than_left(Some(80), None, Some(1_000), 300, Ok(Some(80)))]
#[case::own_is_nothing(Some(0), None, None, 0, Err("its own"))]
#[case::usual_is_nothing(None, Some(0), None, 0, Err("its own"))]
#[case::nothing_left_above(None, None, Some(1_000), 900, Err("your"))]
fn a_budget(
    #[case] own: Option<u64>,
    #[case] usual: Option<u64>,
    #[case] above: Option<u64>,
    #[case] spent: u64,
    #[case] expected: Result<Option<u64>, &str>,
) {
    let mut task = working(1);
    task.budget = tokens(above);
    task.progress.spent = Spent {
        tokens: spent,
        cost: Cost(0),
        ..Spent::default()
    };
    let limits = TaskLimits {
        budget: tokens(usual),
        ..limits(2)
    };
    let asked = LaunchTask {
        budget: tokens(own),
        ..request()
    };
    let facts = facts(&session("child"), Some(&task));
    match (launch(asked, facts, &limits, NOW), expected) {
        (Ok(launched), Ok(expected)) => assert_eq!(launched.budget.tokens, expected),
        (Err(Refusal::NoBudget { what, whose }), Err(expected)) => {
            assert_eq!((what, whose), ("tokens", expected));
        }
        (other, _) => panic!("{other:?}"),
    }
}

#[test]
fn the_time_of_the_one_above_runs_on() {
    let mut task = working(1);
    task.budget.time = Some(Duration::from_secs(100));
    let later = NOW.after(Duration::from_secs(60));
    let facts = facts(&session("child"), Some(&task));
    let launched = launch(request(), facts, &limits(2), later).expect("launched");
    assert_eq!(launched.budget.time, Some(Duration::from_secs(30)));
}

#[rstest]
#[case(By::Main, 10)]
#[case(By::Depth(1), 5)]
#[case(By::Depth(2), 3)]
fn a_skill_has_half_of_its_iterations_at_each_level(#[case] by: By, #[case] expected: u64) {
    let above = above(by);
    let asked = LaunchTask {
        role: Some(Role {
            terms: terms("look", ""),
            instructions: "Look.".to_owned(),
        }),
        ..request()
    };
    let facts = facts(&session("child"), above.as_ref());
    let launched = launch(asked, facts, &limits(9), NOW).expect("launched");
    let role = launched.role.expect("a skill");
    assert_eq!(role.terms.iterations, expected);
    assert_eq!(role.instructions, "Look.");
}

#[rstest]
#[case(Context::Fresh, None)]
#[case(Context::Forked, Some(Plan::default()))]
fn only_a_forked_task_has_a_plan(#[case] context: Context, #[case] plan: Option<Plan>) {
    let asked = LaunchTask {
        context,
        ..request()
    };
    let launched = launch(asked, facts(&session("main"), None), &limits(2), NOW);
    assert_eq!(launched.expect("launched").fork, plan);
}

#[test]
fn whoever_works_in_the_calling_session_is_above() {
    let id = TaskId::from_random(7);
    let shell = Caller::Shell {
        session: "main".into(),
        host: HostRef::from("scripted").into(),
    };
    let task = working(1);
    let of = |caller: &Caller, above: Option<&Task>| {
        let place = place(&id, caller, above, &HostRef::from("scripted")).expect("a place");
        (place.root.to_string(), place.above, place.depth)
    };
    let below = ("main".to_owned(), Some(task.id.clone()), 2);
    assert_eq!(of(&session("main"), None), ("main".to_owned(), None, 1));
    assert_eq!(of(&shell, None), (format!("main/{id}"), None, 1));
    assert_eq!(of(&session("child"), Some(&task)), below);
    assert_eq!(of(&shell, Some(&task)), below);
    let nobody = place(&id, &Caller::Person, None, &HostRef::from("scripted"));
    assert!(matches!(nobody, Err(Refusal::Missing { .. })), "{nobody:?}");
}

/// Each task knows where those are who are told of it: they may live in other hosts than it.
#[test]
fn a_task_in_another_host_knows_where_those_above_are() {
    let (scripted, codex) = (
        HostRef::from("scripted"),
        HostRef::from("agent:codex:/work"),
    );
    let id = TaskId::from_random(7);
    let of = |caller: &Caller, above: Option<&Task>, host: &HostRef| {
        let place = place(&id, caller, above, host).expect("a place");
        (place.outside, place.above_in)
    };
    let main = session("main");
    assert_eq!(of(&main, None, &scripted), (None, None));
    assert_eq!(of(&main, None, &codex), (Some(scripted.clone()), None));
    let mut child = working(1);
    child.brief.host = codex.clone().into();
    child.place.outside = Some(scripted.clone());
    let below = session("child");
    let grandchild = of(&below, Some(&child), &codex);
    assert_eq!(grandchild, (Some(scripted.clone()), None));
    let elsewhere = of(&below, Some(&child), &scripted);
    assert_eq!(
        elsewhere,
        (None, Some(codex.clone())),
        "the root is where it runs"
    );
    let shell = Caller::Shell {
        session: "main".into(),
        host: codex.clone().into(),
    };
    assert_eq!(of(&shell, None, &codex), (None, None));
}

#[test]
fn a_launch_says_what_it_was_decided_by() {
    let launched = launch(request(), facts(&session("main"), None), &limits(2), NOW);
    let Launched {
        batch,
        owner,
        chain,
        from,
        brief,
        prompt,
        ..
    } = launched.expect("launched");
    assert_eq!(batch, 3);
    assert_eq!(owner, Some("worker".into()));
    assert_eq!(chain, Some("chain".into()));
    assert_eq!(from, Some("asking".into()));
    assert_eq!(
        (brief.host, prompt.as_str()),
        (HostRef::from("scripted").into(), "do it")
    );
}

#[rstest]
#[case::no_skill(&[], "other", true)]
#[case::no_limit(&[("outer", "")], "other", true)]
#[case::named(&[("outer", "Skill(other)")], "other", true)]
#[case::any(&[("outer", "Skill")], "other", true)]
#[case::another(&[("outer", "Skill(third)")], "other", false)]
#[case::only_tools(&[("outer", "Read")], "other", false)]
#[case::each_binds(&[("inner", "Skill"), ("outer", "Read")], "other", false)]
#[case::the_limit_is_further_up(&[("inner", ""), ("outer", "Read")], "other", false)]
fn which_skills_a_skill_may_use(
    #[case] innermost_first: &[(&str, &str)],
    #[case] skill: &str,
    #[case] allowed: bool,
) {
    let skills = innermost_first.iter();
    let skills: Vec<Terms> = skills.map(|(name, only)| terms(name, only)).collect();
    let checked = Bound::of(&skills).map_or(Ok(()), |bound| bound.check_skill(skill));
    match checked {
        Ok(()) => assert!(allowed),
        Err(refusal) => {
            assert!(!allowed);
            let by = innermost_first[0].0;
            let expected = format!("the skill `{by}` may not use the skill `other`");
            assert_eq!(refusal.to_string(), expected);
        }
    }
}

#[test]
fn a_skill_goes_on_only_with_tasks_that_it_binds() {
    let id = TaskId::from_random(7);
    let (inner, outer) = (terms("inner", "Read"), terms("outer", "Bash"));
    let bound = Bound::of(&[inner.clone(), outer.clone()]).expect("limits");
    let ours = [outer.tools.clone(), inner.tools.clone()];
    assert_eq!(bound.check_resume(&id, &ours), Ok(()));
    let refused = bound.check_resume(&id, &[outer.tools]);
    let skill = "inner".to_owned();
    let expected = Refusal::NotBoundBySkill { task: id, skill };
    assert_eq!(refused, Err(expected));
}
