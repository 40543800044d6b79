//! A model server that plays a script, over the real protocols.

mod answer;
mod failure;
mod fill;
mod flight;
mod gate;
mod line;
mod playing;
mod prefix;
mod protocol;
mod record;
mod reply;
mod request;
mod script;
mod script_error;
mod script_file;
mod server;
mod stage;
mod stream;
mod when;
mod wire;

pub use gate::Gate;
pub use protocol::Wire;
pub use record::{Counts, Recorded};
pub use reply::{Fault, Reply};
pub use script::Script;
pub use script_error::ScriptError;
pub use server::ModelServer;
pub use when::When;
