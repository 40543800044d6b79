//! What asyncagents shows to programs, as JSON. The names here are read by other people's
//! programs, so they change only on purpose: every view has a snapshot.

mod doctor;
mod fork;
mod models;
mod question;
mod run_event;
mod session;
mod setting;
mod skill;
mod skill_event;
mod sorted;
mod task;
mod trace;
mod values;

pub use doctor::{DoctorView, FindingState, FindingView};
pub use fork::{ForkView, milliseconds};
pub use models::{KeyView, ModelView, ModelsView, ProviderView};
pub use question::AnswerView;
pub use run_event::{RunEvent, RunTotals, SpentView};
pub use session::SessionView;
pub use setting::{AdoptedView, ClearedView, PrunedView, SettingView};
pub use skill::{CheckView, CheckedSkill, FlawView, SkillDetails, SkillView, SkillsView};
pub use skill_event::{SkillEventView, TextPart};
pub use task::TaskView;
pub use trace::{StepView, TraceEvent, TraceView};
pub use values::{arguments, time};
