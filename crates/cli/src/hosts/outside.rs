//! Programs whose sessions launch tasks, and that run none.

use std::{path::PathBuf, sync::Arc};

use asyncagents_core::{
    host_ref::{HostRef, HostSetup},
    port::{Host, HostError},
};
use asyncagents_hosts::{McpClient, OutsideHost, claude_code::ClaudeCode, codex::Codex};

use super::{HostKind, wrong_kind};

/// The program that reaches Codex's threads, looked for on the PATH: a database does not say what is
/// run.
const CODEX: &str = "codex";

/// Programs whose sessions launch tasks, and that run none.
pub(super) struct OutsideHosts;

impl HostKind for OutsideHosts {
    fn open(&self, setup: &HostSetup) -> Result<Arc<dyn Host>, HostError> {
        let folder = |folder: &str| PathBuf::from(folder);
        Ok(Arc::new(match &setup.host {
            HostRef::ClaudeCode { config } => OutsideHost::new(ClaudeCode::new(folder(config))),
            HostRef::Codex { home } => OutsideHost::new(Codex::new(folder(home), CODEX.into())),
            HostRef::McpClient => OutsideHost::new(McpClient),
            HostRef::Engine { .. }
            | HostRef::OpenCodeBridge { .. }
            | HostRef::OpenCodeUrl { .. }
            | HostRef::OpenCode2Bridge { .. }
            | HostRef::OpenCode2Url { .. }
            | HostRef::Agent { .. }
            | HostRef::Other(_) => return Err(wrong_kind(&setup.host)),
        }))
    }
}
