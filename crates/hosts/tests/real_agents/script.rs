//! What the model says when an agent plays the script of the contract.

use std::path::Path;

use asyncagents_scripted_model::{Fault, Reply, Script, When};
use asyncagents_testkit::host_contract::{Does, SCRIPT};

use crate::agent::Agent;

/// A child that gets this asks for a permission.
pub(crate) const ASKS: &str = "Make the program";

/// What is in the file that is read.
pub(crate) const NOTES: &str = "the plants are dry";

/// What the model says. Only requests with tools are the agent's own; others are for titles.
pub(crate) fn script(agent: Agent, notes: &Path) -> Script {
    let own = || When::always().tools(true);
    let mut script = Script::new()
        .rule(
            own().last(ASKS),
            agent.runs("echo made > made.txt; echo it-is-made"),
        )
        .rule(own().contains(ASKS).last("it-is-made"), Reply::text("made"))
        .rule(own().contains(ASKS), Reply::text("made without"));
    for (words, does) in SCRIPT {
        let asked = own().last(*words);
        // What is read is the last that the model is shown.
        let has_read = own().last(NOTES).contains(*words);
        script = match *does {
            Does::Answer(text) => script.rule(asked, Reply::text(text)),
            Does::AnswerAfter(time, text) => script.rule(asked, Reply::text(text).delay(time)),
            Does::Fail(why) => script.rule(asked, Reply::status(400).message(why)),
            Does::CallAndAnswer(text) => script
                .rule(asked, agent.reads(notes))
                .rule(has_read, Reply::text(text)),
            Does::CallAndHang => script
                .rule(asked, agent.reads(notes))
                .rule(has_read, Reply::fault(Fault::Hang)),
        };
    }
    script.rule(When::always(), Reply::text("Very well."))
}
