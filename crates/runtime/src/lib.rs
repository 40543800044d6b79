//! Owns live tasks: launches, runs, ends and announces them.
//!
//! [`Manager`] is the handle by which all requests are made: it decides, in one
//! transaction each. [`Worker`] looks after tasks: it starts what is queued, follows the
//! children, stops what has to be stopped and delivers notices, and takes over from workers
//! that died.

mod answered;
mod clock;
mod held;
mod hosts;
mod listen;
mod manager;
mod metrics;
mod outbox;
mod problem;
mod runner;
mod sent_messages;
mod settings;
mod shared;
mod skill_dirs;
mod skill_files;
mod skill_run;
mod skills;
mod stop;
mod survey;
mod tool_door;
mod watch;
mod worker;

pub use answered::{About, Answered};
pub use clock::SystemClock;
pub use hosts::{ForkSettings, Hosts};
pub use manager::{
    Accepted, AnswerGiven, Asking, Awaited, Cancelled, Cleared, Conversations, Manager,
    MessageAccepted, NewSteps, PruneRequest, Pruned, SessionBounds, SessionState, SessionSummary,
    TakenNotice, TraceFollower, WeakManager,
};
pub use problem::{Problem, ProblemKind};
pub use settings::Settings;
pub use skill_dirs::{SkillAround, SkillDirs, SkillPlaces, check_skills};
pub use skill_files::{SkillFile, skill_files};
pub use skill_run::SkillRun;
pub use skills::{Invocation, Invoker, Ready, SkillTrouble, Skills};
pub use tool_door::ToolDoor;
pub use worker::Worker;
