//! The host of a task on disk.

use asyncagents_core::host_ref::{HostRef, HostSetup, LaunchSettings, UnknownHost};
use serde::{Deserialize, Serialize};

use crate::sql::{Damage, Row};

/// Between a host and the settings of a launch, in events before the fifth format.
const SETTINGS: &str = "//?";

/// Between those and their seal.
const SEAL: &str = "//#";

/// The host in an event. Its settings are fields of their own, but in events of older formats.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
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

impl TryFrom<String> for HostRecord {
    type Error = UnknownHost;

    fn try_from(text: String) -> Result<Self, UnknownHost> {
        let (host, seal) = text.rsplit_once(SEAL).unwrap_or((&text, ""));
        let (host, json) = match host.split_once(SETTINGS) {
            Some((engine, json)) if engine.starts_with("engine:/") => (engine, json),
            Some(_) | None => (host, ""),
        };
        Ok(Self(HostSetup {
            host: host.parse()?,
            settings: LaunchSettings {
                json: json.into(),
                seal: seal.into(),
            },
        }))
    }
}

impl From<HostRecord> for String {
    fn from(record: HostRecord) -> Self {
        record.0.host.to_string()
    }
}

/// The host in a row.
pub(crate) fn host(row: &Row<'_>) -> Result<HostRef, Damage> {
    let host = row.text("host")?;
    host.parse()
        .map_err(|error: UnknownHost| Damage(format!("column host: {error}")))
}

/// The host in a row, with the settings beside it.
pub(crate) fn host_setup(row: &Row<'_>) -> Result<HostSetup, Damage> {
    Ok(HostSetup {
        host: host(row)?,
        settings: LaunchSettings {
            json: row.text("settings")?.into(),
            seal: row.text("seal")?.into(),
        },
    })
}
