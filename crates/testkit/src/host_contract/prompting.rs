//! Sessions are set to work, and what becomes of that.

use asyncagents_core::{lifecycle::Standing, task::Outcome, transcript::Role};

use crate::plain::prompt;

use super::{
    scene::{Scene, answer, inheritance, outcome, task, texts, times},
    script::{BREAK, BROKEN, COUNT, COUNTED, HAS_READ, MEASURE, MEASURED, READ, THINK, THOUGHT},
};

pub(super) async fn a_prompt_that_was_never_sent_is_not_in_the_history(scene: Scene) {
    let new = scene.child(&task(1)).await;
    let standing = scene.standing(&new, &task(1).prompt(0)).await;
    assert_eq!(standing, Standing::Unprompted);
    let (session, _) = scene.answered(2, COUNT).await;
    let standing = scene.standing(&session, &task(2).prompt(1)).await;
    assert_eq!(standing, Standing::Unprompted, "the next run");
}

/// From when [`Host::prompt`] has returned until the end: a caller that asks would otherwise
/// send it again.
///
/// [`Host::prompt`]: asyncagents_core::port::Host::prompt
pub(super) async fn a_prompt_that_was_taken_is_in_the_history(scene: Scene) {
    let (session, prompt) = scene.at_work(1, THINK).await;
    for _ in 0..20 {
        let standing = scene.standing(&session, &prompt).await;
        assert_ne!(standing, Standing::Unprompted);
        tokio::task::yield_now().await;
    }
    assert_eq!(answer(&scene.ended(&session, &prompt).await), THOUGHT);
    assert_ne!(
        scene.standing(&session, &prompt).await,
        Standing::Unprompted
    );
}

pub(super) async fn a_child_ends_with_its_answer_and_what_it_used(scene: Scene) {
    let (session, prompt) = scene.at_work(1, READ).await;
    let end = scene.ended(&session, &prompt).await;
    assert_eq!(answer(&end), HAS_READ);
    let totals = end.totals.expect("what it used");
    assert!(totals.tokens > 0);
    assert_eq!(totals.turns, 2);
    assert_eq!(totals.by_tool, [(scene.site.tool().to_owned(), 1)].into());
}

pub(super) async fn a_child_that_fails_says_why(scene: Scene) {
    let (session, prompt) = scene.at_work(1, BREAK).await;
    let end = scene.ended(&session, &prompt).await;
    match outcome(&end) {
        Outcome::Failed { why } => assert!(why.contains(BROKEN), "{why}"),
        other => panic!("{other:?}"),
    }
}

pub(super) async fn a_child_at_work_is_working(scene: Scene) {
    let (session, prompt) = scene.hanging(1).await;
    for _ in 0..3 {
        let standing = scene.standing(&session, &prompt).await;
        assert_eq!(standing, Standing::Working);
    }
    let (other, prompt) = scene.at_work(2, COUNT).await;
    let end = scene.ended(&other, &prompt).await;
    assert_eq!(answer(&end), COUNTED, "nobody waits for it");
}

pub(super) async fn the_same_prompt_is_worked_on_once(scene: Scene) {
    let (session, id) = scene.answered(1, COUNT).await;
    if !scene.site.abilities().keeps_posts_once {
        return;
    }
    let again = scene.host.prompt(&session, prompt(id.clone(), COUNT));
    assert_eq!(again.await, Ok(()));
    assert_eq!(answer(&scene.ended(&session, &id).await), COUNTED);
    let messages = scene.messages(&session).await;
    assert_eq!(texts(&messages, Role::User), [COUNT]);
    assert_eq!(texts(&messages, Role::Assistant), [COUNTED]);
}

pub(super) async fn the_next_prompt_has_its_own_end_and_usage_is_of_all(scene: Scene) {
    let (session, first) = scene.answered(1, COUNT).await;
    let before = scene.inspect(&session, &first).await.totals;
    let before = before.expect("what it used");
    let second = scene.prompt(&session, (&task(1), 1), MEASURE).await;
    let end = scene.ended(&session, &second).await;
    assert_eq!(answer(&end), MEASURED);
    let after = end.totals.expect("what it used");
    assert!(before.tokens > 0 && after.tokens > before.tokens);
    assert_eq!((before.turns, after.turns), (1, 2));
}

pub(super) async fn what_is_inherited_is_shown_before_the_prompt(scene: Scene) {
    let task = task(1);
    let session = scene.child(&task).await;
    let inheritance = inheritance(&task);
    let injected = scene.host.inject(&session, inheritance.clone()).await;
    assert_eq!(injected, Ok(()));
    let standing = scene.standing(&session, &task.prompt(0)).await;
    assert_eq!(standing, Standing::Unprompted, "it is not answered");
    let prompt = scene.prompt(&session, (&task, 0), COUNT).await;
    assert_eq!(answer(&scene.ended(&session, &prompt).await), COUNTED);
    let shown = scene.site.shown(&session).await;
    let at = |words: &str| shown.find(words).expect("it is shown");
    let places = [&*inheritance.preamble, &*inheritance.context, COUNT].map(at);
    assert!(places.is_sorted(), "{shown}");
}

pub(super) async fn what_is_inherited_twice_is_there_once(mut scene: Scene) {
    let task = task(1);
    let session = scene.child(&task).await;
    let inheritance = inheritance(&task);
    for _ in 0..2 {
        let injected = scene.host.inject(&session, inheritance.clone()).await;
        assert_eq!(injected, Ok(()));
    }
    scene.restart().await;
    let injected = scene.host.inject(&session, inheritance.clone()).await;
    assert_eq!(injected, Ok(()));
    let prompt = scene.prompt(&session, (&task, 0), COUNT).await;
    scene.ended(&session, &prompt).await;
    let shown = scene.site.shown(&session).await;
    assert_eq!(times(&shown, &inheritance.context), 1, "{shown}");
}
