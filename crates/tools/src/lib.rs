//! What an agent can do to a workspace, and the sandbox around it.

mod arguments;
mod clean_output;
mod exact_file;
mod fit_answer;
mod memory;
mod need;
mod places;
mod private_before;
mod private_files;
mod resources;
mod sandbox;
mod secret_paths;
mod settings;
mod temporary;
mod tool;
mod toolbox;
mod variables;

pub use need::{Kind, Need};
pub use resources::{Bytes, MemoryLimit, Resources};
pub use sandbox::{Sandbox, sandbox_exec};
pub use secret_paths::named_by_variables as secret_paths_named_by;
pub use settings::{SandboxMode, Settings};
pub use toolbox::{Reaching, Toolbox};
