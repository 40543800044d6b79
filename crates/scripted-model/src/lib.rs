//! A model server that plays a script, over the real protocols.

mod active_rules;
mod answer;
mod connection;
mod failure;
mod fill;
mod gate;
mod in_flight;
mod prefix;
mod protocol;
mod record;
mod reply;
mod request;
mod respond;
mod script;
mod script_error;
mod script_file;
mod server;
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
