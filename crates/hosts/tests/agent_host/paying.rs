//! What an agent says that it has spent.

use asyncagents_core::{budget::Cost, id::TaskId, port::Host};
use asyncagents_testkit::plain;

use crate::{
    fake::{Abilities, FakeAgent, Sums},
    world::{World, child, ended},
};

/// What a session has cost after a prompt for $0.10 and one for $0.12, in a process each.
async fn billed(sums: Sums, token: Option<Cost>) -> Cost {
    let agent = FakeAgent::with(Abilities {
        sums: Some(sums),
        ..Abilities::default()
    });
    let world = World::new(agent).priced_at(token);
    let task = TaskId::from_random(1);
    let session = child(&world, &task).await;
    for run in 0..2 {
        let prompt = plain::prompt(task.prompt(run), "Count the files");
        let host = world.host();
        host.prompt(&session, prompt).await.expect("it is taken");
        ended(&host, &session, &task.prompt(run)).await;
        world.restart().await;
    }
    let seen = world.host().inspect(&session, &task.prompt(1)).await;
    seen.expect("it is known").totals.expect("totals").cost
}

/// A follow-up in a new process costs what it costs, whether the agent has kept its sum or not.
/// Without a price that would tell which, nothing is left out.
#[tokio::test(flavor = "multi_thread")]
async fn a_follow_up_in_a_new_process_is_billed_whatever_the_sum_of_the_agent_begins_with() {
    let about_right = Some(Cost(1_500));
    assert_eq!(billed(Sums::AtZero, about_right).await, Cost(220_000));
    assert_eq!(billed(Sums::WhereItWas, about_right).await, Cost(220_000));
    assert_eq!(billed(Sums::AtZero, None).await, Cost(220_000));
    assert_eq!(billed(Sums::WhereItWas, None).await, Cost(320_000));
}

/// An answer that calls a tool is counted by our own prices until the agent says what the turn has
/// cost: then that counts, whether our prices are unknown, too low, right or too high.
#[tokio::test(flavor = "multi_thread")]
async fn a_turn_with_a_call_costs_what_the_agent_says() {
    for token in [None, Some(Cost(1)), Some(Cost(500)), Some(Cost(900))] {
        let agent = FakeAgent::with(Abilities {
            sums: Some(Sums::AtZero),
            ..Abilities::default()
        });
        let world = World::new(agent).priced_at(token);
        let (host, task) = (world.host(), TaskId::from_random(1));
        let session = child(&world, &task).await;
        let prompt = plain::prompt(task.prompt(0), "Read the notes");
        host.prompt(&session, prompt).await.expect("it is taken");
        ended(&host, &session, &task.prompt(0)).await;
        let seen = host.inspect(&session, &task.prompt(0)).await;
        let totals = seen.expect("it is known").totals.expect("totals");
        let counted = (totals.cost, totals.turns);
        assert_eq!(counted, (Cost(100_000), 2), "{token:?} a token");
    }
}
