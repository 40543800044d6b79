//! The host of a task on disk.

use asyncagents_core::host_ref::{HostRef, HostSetup, LaunchSettings};
use serde::{Deserialize, Serialize};

use crate::sql::{Damage, Row};

/// Between a host and the settings of a launch, as versions before the fifth format write them.
const SETTINGS: &str = "//?";

/// Between those and their seal.
const SEAL: &str = "//#";

/// The host in an event. Its settings are fields of their own, but in events of older formats.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub(crate) struct HostRecord(pub(crate) HostSetup);

impl HostRecord {
    pub(crate) fn with(self, settings: LaunchSettings) -> HostSetup {
        if settings == LaunchSettings::default() {
            return self.0;
        }
        let host = self.0.host;
        HostSetup { host, settings }
    }
}

impl From<String> for HostRecord {
    fn from(text: String) -> Self {
        Self(from_one_text(&text))
    }
}

impl From<HostRecord> for String {
    fn from(record: HostRecord) -> Self {
        record.0.host.to_string()
    }
}

impl From<HostRef> for HostRecord {
    fn from(host: HostRef) -> Self {
        Self(host.into())
    }
}

impl From<HostRecord> for HostRef {
    fn from(record: HostRecord) -> Self {
        record.0.host
    }
}

fn from_one_text(text: &str) -> HostSetup {
    let (host, seal) = match text.rsplit_once(SEAL) {
        Some((host, seal)) if seal.len() == 64 => (host, seal),
        Some(_) | None => (text, ""),
    };
    let (host, json) = match host.split_once(SETTINGS) {
        Some((engine, json)) if engine.starts_with("engine:/") => (engine, json),
        Some(_) | None => (host, ""),
    };
    HostSetup {
        host: host.into(),
        settings: LaunchSettings {
            json: json.into(),
            seal: seal.into(),
        },
    }
}

/// The host in a row. A process of the version before that has not ended yet may have written it.
pub(crate) fn host(row: &Row<'_>) -> Result<HostRef, Damage> {
    Ok(from_one_text(&row.text("host")?).host)
}

/// The host in a row, with the settings beside it.
pub(crate) fn host_setup(row: &Row<'_>) -> Result<HostSetup, Damage> {
    let record = HostRecord(from_one_text(&row.text("host")?));
    Ok(record.with(LaunchSettings {
        json: row.text("settings")?.into(),
        seal: row.text("seal")?.into(),
    }))
}
