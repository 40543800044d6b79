//! Which model a child has: the one that its launch names, of those that its user allows; and
//! another one when that is unavailable.

use asyncagents_scripted_model::{Reply, Script};
use serde_json::{Value, json};

use crate::harness::{
    FIRST_MODEL, Opencode, SECOND_MODEL, Session, Setup, THIRD_MODEL, child, launch, story, task_id,
};
use crate::told::told;

told!(v1, v2, v2_background:
    a_child_has_the_model_and_the_effort_that_its_launch_names,
);
told!(v1, v2_background:
    a_model_that_cannot_be_had_is_refused_with_those_that_can,
    a_child_whose_model_is_unavailable_goes_on_with_the_next_one,
);

/// The full name of a model.
fn full(model: &str) -> String {
    format!("scripted/{model}")
}

/// The parameters that launch a task with these choices.
fn chosen(choices: Value) -> Value {
    let mut launch = launch("count", "Count the files");
    for (name, value) in choices.as_object().expect("choices") {
        launch[name] = value.clone();
    }
    launch
}

fn counting() -> Script {
    story().rule(child("Count the files"), Reply::text("There are three."))
}

fn a_child_has_the_model_and_the_effort_that_its_launch_names(opencode: Opencode) {
    let world = Setup::new(opencode, counting()).world();
    let server = world.serve();
    let parent = server.session();
    let choices = json!({"model": full(SECOND_MODEL), "effort": "high"});
    let id = task_id(&parent.uses("asyncagents_task", chosen(choices)));
    let request = world.until_child_asks("Count the files");
    assert_eq!(request.model(), SECOND_MODEL);
    assert_eq!(
        request.json()["reasoning_effort"],
        "high",
        "{}",
        request.body
    );
    parent.until_told(1);
    let shown = parent.uses("asyncagents_output", json!({"task_id": id}));
    assert!(shown.contains("There are three."), "{shown}");
    // The parent has its own, also for the notice.
    let mut models = parent.requests().into_iter().map(|request| request.model());
    assert!(models.all(|model| model == FIRST_MODEL));
}

/// Has a launch refused, and returns why. There is no task.
fn refused(parent: &Session<'_>, choices: Value) -> String {
    let why = parent.uses("asyncagents_task", chosen(choices));
    assert!(!why.contains("task_"), "{why}");
    why
}

fn a_model_that_cannot_be_had_is_refused_with_those_that_can(opencode: Opencode) {
    let (first, second, third) = (full(FIRST_MODEL), full(SECOND_MODEL), full(THIRD_MODEL));
    let allowed = format!("models.allowed = [\"{first}\", \"{second}\"]\n");
    let world = Setup::new(opencode, counting())
        .own_settings(&allowed)
        .world();
    let server = world.serve();
    let parent = server.session();
    let unknown = refused(&parent, json!({"model": "scripted/secnd"}));
    assert!(unknown.contains("scripted/secnd"), "{unknown}");
    assert!(
        unknown.contains(&first) && unknown.contains(&second),
        "{unknown}"
    );
    assert!(
        !unknown.contains(&third),
        "what is not allowed is not offered: {unknown}"
    );
    let forbidden = refused(&parent, json!({"model": third}));
    assert!(forbidden.contains("models.allowed"), "{forbidden}");
    assert!(
        forbidden.contains(&first) && forbidden.contains(&second),
        "{forbidden}"
    );
    let list = parent.uses("asyncagents_list", json!({}));
    assert_eq!(list, "No background tasks found");
    assert!(
        world
            .requests_with("Count the files")
            .iter()
            .all(|asked| asked.model() == FIRST_MODEL)
    );
    // One that is allowed is launched all the same.
    parent.uses("asyncagents_task", chosen(json!({"model": second})));
    parent.until_told(1);
    assert_eq!(
        world.until_child_asks("Count the files").model(),
        SECOND_MODEL
    );
}

fn a_child_whose_model_is_unavailable_goes_on_with_the_next_one(opencode: Opencode) {
    let quota = "You exceeded your current quota, please check your plan and billing details.";
    let out_of_quota = Reply::status(429).code("insufficient_quota").message(quota);
    let gone = Reply::status(404).message("The model does not exist.");
    let counting = || child("").contains("Count the files");
    let script = story()
        .rule(counting().model(FIRST_MODEL), out_of_quota)
        .rule(counting().model(SECOND_MODEL), gone)
        .rule(
            counting().model(THIRD_MODEL),
            Reply::text("There are three."),
        );
    let (second, third) = (full(SECOND_MODEL), full(THIRD_MODEL));
    let fallbacks = format!("fallback_models = [\"{second}\", \"{third}\"]\n");
    let world = Setup::new(opencode, script)
        .own_settings(&fallbacks)
        .world();
    let server = world.serve();
    let parent = server.session();
    let id = task_id(&parent.uses("asyncagents_task", launch("count", "Count the files")));
    let notices = parent.until_told(1);
    assert!(
        notices[0].visible.contains("\"count\" finished"),
        "{notices:?}"
    );
    let shown = parent.uses("asyncagents_output", json!({"task_id": id}));
    assert!(shown.contains("There are three."), "{shown}");
    for (from, to) in [(FIRST_MODEL, SECOND_MODEL), (SECOND_MODEL, THIRD_MODEL)] {
        let (from, to) = (full(from), full(to));
        let taken_over = shown.lines().any(|line| {
            line.starts_with(&format!("Model: {from} was unavailable ("))
                && line.ends_with(&format!("; {to} goes on instead."))
        });
        assert!(taken_over, "{from}, {to}: {shown}");
    }
    assert!(shown.contains("quota"), "{shown}");
    // All in one session, which has its task once.
    let messages = parent.child().messages();
    let prompts = messages
        .iter()
        .filter(|message| message.text.contains("Count the files"));
    assert_eq!(prompts.count(), 1, "{messages:#?}");
    world.stays("told once", || parent.ends_told() == 1);
}
