//! Runs the commands in skills' bodies.

use async_trait::async_trait;
use asyncagents_core::{
    agent::{Kind, Permissions, Verdict},
    port::Commands,
};
use asyncagents_tools::Toolbox;

/// Runs commands read-only, without asking: what the user forbids or wants to be asked about is
/// refused.
pub(crate) struct ReadOnlyCommands {
    pub(crate) toolbox: Toolbox,
    pub(crate) permissions: Permissions,
}

#[async_trait]
impl Commands for ReadOnlyCommands {
    async fn run(&self, command: &str) -> Result<String, String> {
        let unsandboxed = match self.permissions.judge("bash", Kind::Run, command) {
            Verdict::Allow => true,
            Verdict::Ask { by_rule: false } => false,
            Verdict::Ask { by_rule: true } => {
                return Err("your permissions want it to be asked for".to_owned());
            }
            Verdict::Deny(why) => return Err(why),
        };
        self.toolbox.run_read_only(command, unsandboxed).await
    }
}
