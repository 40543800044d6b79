//! An `opencode serve` at an address.

use std::{env, sync::Arc};

use anyhow::{Context, anyhow};
use asyncagents_core::{
    host_ref::{HostRef, HostSetup},
    port::{Host, HostError},
};
use asyncagents_hosts::{
    Address, HttpConnection,
    opencode::{self, OpenCode},
};
use asyncagents_runtime::Problem;

use super::{HostContext, HostKind, ShellLaunch, refused, wrong_kind};
use crate::{exit::Failure, launch_secrets::Overrides};

pub(super) struct OpenCodeUrlHosts(pub(super) Arc<HostContext>);

impl OpenCodeUrlHosts {
    /// Address and folder are sealed: where something runs is for the user to say, and others may
    /// have changed the database.
    fn setup(&self, url: &str, folder: Option<&str>) -> anyhow::Result<HostSetup> {
        let host = HostRef::OpenCodeUrl {
            url: url.into(),
            folder: folder.map(Into::into),
        };
        Ok(self.0.launches()?.seal(host, String::new()))
    }

    /// A child works in the folder of its parent; without one, in this folder if the server is on
    /// this machine.
    pub(super) async fn check(&self, launch: &mut ShellLaunch<'_>) -> Result<(), Failure> {
        let HostRef::OpenCodeUrl { url, .. } = &launch.host.host else {
            return Ok(());
        };
        let has_parent = OpenCode::is_session(&launch.session);
        if launch.request.fork && !has_parent {
            return Err(Failure::Input(anyhow!(
                "say with --session which session of OpenCode is to be inherited"
            )));
        }
        let is_here = ["://127.0.0.1", "://localhost", "://[::1]"];
        let folder = if has_parent {
            let remote = self.connect(&launch.host).map_err(Problem::from)?;
            let folder = remote.folder_of(&launch.session).await;
            folder.map_err(Problem::from)?
        } else if is_here.iter().any(|here| url.contains(here)) {
            let here = env::current_dir()
                .context("this folder")
                .map_err(Failure::Machine)?;
            here.to_str().map(str::to_owned)
        } else {
            None
        };
        launch.host = self.setup(url, folder.as_deref()).map_err(Failure::Input)?;
        Ok(())
    }

    fn connect(&self, setup: &HostSetup) -> Result<OpenCode, HostError> {
        let HostRef::OpenCodeUrl { url, folder } = &setup.host else {
            return Err(wrong_kind(&setup.host));
        };
        let checked = self.0.launches().and_then(|ours| ours.check(setup));
        checked.map_err(refused)?;
        let address = Address {
            url: url.to_string(),
            directory: folder.as_deref().map(str::to_owned),
            password: env::var("OPENCODE_SERVER_PASSWORD").ok(),
        };
        let manager = self.0.manager().ok();
        let prefix = manager.map(|manager| manager.settings().wording.prefix.clone());
        let settings = opencode::Settings {
            prefix: prefix.unwrap_or_default(),
            began: None,
        };
        let connection = Arc::new(HttpConnection::new(address, &opencode::HTTP)?);
        Ok(OpenCode::new(connection, self.0.clock.clone(), settings))
    }
}

impl HostKind for OpenCodeUrlHosts {
    fn named(&self, rest: Option<&str>, _: &Overrides) -> anyhow::Result<HostSetup> {
        let url = rest.unwrap_or_default().trim_end_matches('/');
        if !(url.starts_with("http://") || url.starts_with("https://")) {
            anyhow::bail!(
                "`{url}` is no address of an OpenCode; it begins with http:// or https://"
            );
        }
        if url.contains(['?', '#']) {
            anyhow::bail!("`{url}` is no address of an OpenCode; it has neither ? nor #");
        }
        if url.contains('@') {
            anyhow::bail!(
                "the password of OpenCode is not part of its address; set \
                 OPENCODE_SERVER_PASSWORD"
            );
        }
        self.setup(url, None)
    }

    fn open(&self, setup: &HostSetup) -> Result<Arc<dyn Host>, HostError> {
        Ok(Arc::new(self.connect(setup)?))
    }
}
