//! What the agents do in the stories.

use std::time::Duration;

/// What an agent does on a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Does {
    /// Answers in one turn, with some usage.
    Answer(&'static str),
    /// Answers after a while.
    AnswerAfter(Duration, &'static str),
    /// Ends with an error.
    Fail(&'static str),
    /// Calls [`TOOL`] once, without arguments that matter, and answers in the next turn.
    CallAndAnswer(&'static str),
    /// Calls [`TOOL`] once, and then never ends its turn.
    CallAndHang,
}

/// The tool that is called.
pub const TOOL: &str = "read";

pub(super) const COUNT: &str = "Count the files";
pub(super) const COUNTED: &str = "12 files";
pub(super) const MEASURE: &str = "Measure the folder";
pub(super) const MEASURED: &str = "340 bytes";
pub(super) const NAME: &str = "Name the author";
pub(super) const NAMED: &str = "Ada";
pub(super) const READ: &str = "Read the notes";
pub(super) const HAS_READ: &str = "Water the plants";
pub(super) const THINK: &str = "Think for a moment";
pub(super) const THOUGHT: &str = "It is blue";
pub(super) const BREAK: &str = "Use the broken model";
pub(super) const BROKEN: &str = "this model is broken";
pub(super) const HANG: &str = "Wait for ever";
pub(super) const NOTICE: &str = "A background task has ended";
pub(super) const NOTED: &str = "I have seen that it ended";
const SUM_UP: &str = "Sum up what you have found";

/// What is said to [`LAST_TURN`].
pub(super) const SUMMED_UP: &str = "Half of it is done";

/// What is asked beside a session.
pub const LAST_TURN: (&str, Does) = (SUM_UP, Does::AnswerAfter(MOMENT, SUMMED_UP));

const MOMENT: Duration = Duration::from_millis(300);

/// What an agent does on a prompt that contains these words. The first one is that of a parent.
pub const SCRIPT: &[(&str, Does)] = &[
    (COUNT, Does::Answer(COUNTED)),
    (MEASURE, Does::Answer(MEASURED)),
    (NAME, Does::Answer(NAMED)),
    (READ, Does::CallAndAnswer(HAS_READ)),
    (THINK, Does::AnswerAfter(MOMENT, THOUGHT)),
    (BREAK, Does::Fail(BROKEN)),
    (HANG, Does::CallAndHang),
    // Where a notice sets a session to work.
    (NOTICE, Does::Answer(NOTED)),
    LAST_TURN,
];

/// What an agent does on a prompt.
///
/// # Panics
/// When the script does not say.
pub fn does(prompt: &str) -> Does {
    let mut script = SCRIPT.iter();
    let entry = script.find(|(words, _)| prompt.contains(words));
    entry.expect("a prompt of the script").1
}
