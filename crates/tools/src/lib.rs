//! What an agent can do to a workspace, and the sandbox around it.

mod agent_process;
mod clean_output;
mod exact_file;
mod fit_answer;
mod lists;
mod memory;
mod places;
mod prepared;
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
mod workspace;

pub use agent_process::{
    AgentCommand, AgentFiles, AgentLife, AgentLimits, AgentNetwork, AgentProcess, AgentStartError,
    agent_environment,
};
pub use places::real_path;
pub use prepared::Prepared;
pub use resources::{Bytes, MemoryLimit, Resources};
pub use sandbox::{SESSION_VARIABLE, Sandbox, sandbox_exec};
pub use secret_paths::named_by_variables as secret_paths_named_by;
pub use settings::{SandboxMode, Settings};
pub use tool::specs;
pub use toolbox::Toolbox;
pub use variables::WORKERS_MEMORY;
pub use workspace::Reaching;
