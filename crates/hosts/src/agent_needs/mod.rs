//! What known agents need to work in the sandbox: hosts of models, files of their own, variables. All
//! else is kept from them.

mod apart;
mod files;
mod gemini_conversation;
mod gemini_settings;
mod project_name;
mod servers;
mod table;

pub use files::OwnFiles;
pub use gemini_conversation::keep_gemini_conversation;
pub use table::{Needs, known, needs};
