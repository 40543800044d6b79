//! The rules of asyncagents: what a forked child inherits of a conversation, and what may
//! happen to a background task. Nothing here reads a file, a clock or the network.
//!
//! ```
//! use asyncagents_core::{fork::{Parent, Preset, fork}, read::Format, tokens};
//!
//! let json = r#"[{"info": {"role": "user"}, "parts": [{"type": "text", "text": "Why is it slow?"}]}]"#;
//! let parent = Parent::new(Format::OpenCode.read(json)?);
//! let child = fork(&parent, &Preset::Graduated.limits(), tokens::o200k)?;
//! assert!(child.context.contains("User:\nWhy is it slow?\n"));
//! assert!(child.preamble.contains("Do only the task you are given"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod agent;
pub mod answer;
pub mod arguments;
pub mod budget;
pub mod digest;
pub mod end_notice;
pub mod event;
pub mod fallback;
pub mod foreign_tags;
pub mod fork;
mod frontmatter;
pub mod host_ref;
pub mod id;
pub mod last_turn;
pub mod launch;
pub mod lifecycle;
pub mod lock;
pub mod make_visible;
pub mod model_choice;
pub mod moment;
pub mod notify;
mod open_question;
pub mod owner_rule;
pub mod port;
pub mod progress;
pub mod question;
pub mod read;
pub mod refusal;
pub mod request;
pub mod schedule;
pub mod secret;
pub mod shorten;
pub mod similar;
pub mod skill;
pub mod skill_event;
pub mod speaker;
pub mod sub_agent_report;
pub mod task;
pub mod task_limits;
pub mod task_list;
mod text;
pub mod tokens;
pub mod tool_set;
pub mod trace;
pub mod transcript;
pub mod unknown_names;
pub mod wording;
mod words;
