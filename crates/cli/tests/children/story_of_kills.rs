//! Whatever is killed, and whenever: the work is done once, and somebody is told what came of it.

use std::fs;

use asyncagents_scripted_model::{Gate, Reply, Script, When};
use rustix::process::Signal;

use crate::{
    agent::Agent,
    world::{World, asked, printed},
};

told! {
    a_worker_that_is_killed_as_the_agent_starts
    an_adapter_that_is_killed_before_the_first_answer
    an_adapter_that_is_killed_while_it_asks
    a_worker_that_is_killed_in_a_follow_up
    a_worker_that_is_killed_before_the_first_answer_of_a_fork
    a_worker_that_is_killed_while_it_cancels
}

const WORKER: &str = " worker";

/// How far a task is when something is killed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Moment {
    Starting,
    FirstAnswer,
    Asking,
    FollowUp,
    Fork,
}

impl Moment {
    /// What the agent is told last, and what it answers to that.
    fn work(self) -> (&'static str, &'static str) {
        match self {
            Self::Starting | Self::FirstAnswer => ("Name the colour", "It is blue."),
            Self::Asking => ("Make it", "It is there."),
            Self::FollowUp => ("And its opposite", "It is orange."),
            Self::Fork => ("Say what you inherited", "It is under the oak."),
        }
    }

    /// What it knows beside that: its model is shown it once.
    fn known(self) -> &'static [&'static str] {
        match self {
            Self::Starting | Self::FirstAnswer | Self::Asking => &[],
            Self::FollowUp => &["Name the colour", "It is blue."],
            Self::Fork => &["SESAME"],
        }
    }
}

/// Something is killed at a moment. The work is done once all the same.
fn done_once(agent: Agent, moment: Moment, killed: &str) {
    let gate = Gate::closed();
    let held = gate.clone();
    let (prompt, result) = moment.work();
    // The command is told, too, where nobody could be asked: it is not what it prints.
    let make = agent.runs_in_our_sandbox("echo made >> made.txt && printf it-is-%s made");
    let script = move |_: &_| {
        // What is cut off may be gone, so that it is not the last that is said which counts.
        let told = || When::always().tools(true).contains(prompt);
        let last = match moment {
            Moment::Asking => Script::new()
                .rule(printed("it-is-made"), Reply::text(result))
                .rule(told(), make),
            _ => Script::new().rule(told(), Reply::text(result).behind(&held)),
        };
        last.rule(asked("Name the colour"), Reply::text("It is blue."))
            .rule(
                When::always().model("parent"),
                Reply::text("I do not know yet."),
            )
    };
    let Some(world) = World::new(agent, script) else {
        return;
    };
    let id = match moment {
        Moment::Starting | Moment::FirstAnswer | Moment::Asking => world.launch(prompt),
        Moment::FollowUp => {
            let id = world.launch("Name the colour");
            assert_eq!(world.result(&id), "It is blue.");
            let done = world.asyncagents(&["resume", &id, prompt]);
            assert_eq!(done.code, Some(0), "{done:?}");
            id
        }
        Moment::Fork => {
            let session = world.conversation("Where is the vault? A hint: SESAME");
            world.launched(&["--session", &session, "--fork", prompt])
        }
    };
    let first = match moment {
        Moment::Starting => {
            let process = agent.process();
            world.until("it starts", || world.processes(process).pop().map(drop));
            None
        }
        Moment::Asking => Some(world.question(&id)),
        Moment::FirstAnswer | Moment::FollowUp | Moment::Fork => {
            world.until_asked(prompt);
            None
        }
    };
    world.kill(killed);
    gate.open();
    if let Some(first) = first {
        let second = world.until("it asks again, and only that", || {
            let open = world.questions(&id);
            (open.len() == 1 && open[0] != first).then(|| open[0].clone())
        });
        world.permit(&id, &second);
    }
    assert_eq!(world.result(&id), result);
    let requests = world.requests();
    let last = requests.last().expect("a request").text();
    for words in moment.known().iter().chain([&prompt]) {
        assert_eq!(last.matches(words).count(), 1, "{words}: {last}");
    }
    if moment == Moment::Asking {
        let made = fs::read_to_string(world.home.path("project/made.txt"));
        assert_eq!(made.expect("read"), "made\n");
    }
}

mod tell {
    use super::*;

    pub(super) fn a_worker_that_is_killed_as_the_agent_starts(agent: Agent) {
        done_once(agent, Moment::Starting, WORKER);
    }

    pub(super) fn an_adapter_that_is_killed_before_the_first_answer(agent: Agent) {
        done_once(agent, Moment::FirstAnswer, agent.process());
    }

    pub(super) fn an_adapter_that_is_killed_while_it_asks(agent: Agent) {
        done_once(agent, Moment::Asking, agent.process());
    }

    pub(super) fn a_worker_that_is_killed_in_a_follow_up(agent: Agent) {
        done_once(agent, Moment::FollowUp, WORKER);
    }

    pub(super) fn a_worker_that_is_killed_before_the_first_answer_of_a_fork(agent: Agent) {
        done_once(agent, Moment::Fork, WORKER);
    }

    /// The agent is frozen, so that its worker waits for it to stop.
    pub(super) fn a_worker_that_is_killed_while_it_cancels(agent: Agent) {
        let Some((world, id)) = World::at_work_for_ever(agent, Script::new()) else {
            return;
        };
        world.signal(agent.process(), Signal::STOP);
        let done = world.asyncagents(&["cancel", &id]);
        assert_eq!(done.code, Some(0), "{done:?}");
        world.kill(WORKER);
        assert_eq!(world.ended(&id)["status"], "cancelled");
        world.until_gone("until [ -e never ]");
        world.until_gone(agent.process());
        assert_eq!(world.requests().len(), 1, "nobody goes on with it");
    }
}
