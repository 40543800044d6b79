//! Asks an OpenCode 2 which plugins it has loaded in a folder: the background server if one runs, or
//! else one that is started for it.

use std::{
    env,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, bail};
use asyncagents_core::secret::Secret;
use asyncagents_hosts::opencode2::service::{Service, service_file};
use reqwest::{StatusCode, Url};
use serde::Deserialize;
use tokio::time::{Instant, sleep};

use super::{loader, place::is_same};
use crate::print;

/// How long the plugins of a folder may take. They need 0.3 s; until then the list is empty.
const LOAD: Duration = Duration::from_secs(15);

/// How long one question may take.
const ANSWER: Duration = Duration::from_secs(10);

/// How long to wait before it is asked again.
const AGAIN: Duration = Duration::from_millis(200);

/// What an OpenCode 2 answered.
pub(super) struct Answered {
    /// Which one it was, for people.
    pub(super) who: String,
    plugins: Vec<Listed>,
}

/// What became of our plugin.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum State {
    Loaded,
    Failed(String),
    /// It is not in the list.
    Missing,
    /// Not even the built-in plugins are there.
    NothingAtAll,
}

impl State {
    pub(super) fn word(&self) -> &'static str {
        match self {
            Self::Loaded => "loaded",
            Self::Failed(_) => "refused",
            Self::Missing | Self::NothingAtAll => "not loaded",
        }
    }
}

/// A plugin in OpenCode's list, of this build and of later ones.
#[derive(Debug, Deserialize)]
struct Listed {
    source: Option<Source>,
    #[serde(flatten)]
    here: Standing,
    state: Option<Standing>,
}

#[derive(Debug, Deserialize)]
struct Source {
    path: Option<PathBuf>,
}

#[derive(Debug, Deserialize)]
struct Standing {
    status: Option<String>,
    error: Option<String>,
}

impl Answered {
    /// What became of the plugin in these files.
    pub(super) fn state_of(&self, files: &[&Path]) -> State {
        if self.plugins.is_empty() {
            return State::NothingAtAll;
        }
        let is_ours = |plugin: &&Listed| {
            let path = plugin
                .source
                .as_ref()
                .and_then(|source| source.path.as_ref());
            path.is_some_and(|path| files.iter().any(|file| is_same(file, path)))
        };
        let ours = self.plugins.iter().filter(is_ours);
        let states: Vec<State> = ours.map(Listed::state).collect();
        let mut failed = states.iter().filter(|state| **state != State::Loaded);
        match failed.next() {
            Some(State::Failed(why)) => State::Failed(why.clone()),
            _ if states.is_empty() => State::Missing,
            _ => State::Loaded,
        }
    }
}

impl Listed {
    fn state(&self) -> State {
        let standings = [Some(&self.here), self.state.as_ref()];
        let mut standings = standings.into_iter().flatten();
        match standings.find(|standing| standing.status.is_some()) {
            Some(standing) if standing.status.as_deref() == Some("failed") => {
                let error = standing.error.as_deref().unwrap_or("it does not say why");
                let line = error.lines().next().unwrap_or_default();
                State::Failed(line.chars().filter(print::harmless).take(300).collect())
            }
            _ => State::Loaded,
        }
    }
}

/// Asks which plugins there are in a folder.
pub(super) async fn ask(program: &Path, folder: &Path) -> anyhow::Result<Answered> {
    match ask_running(folder).await {
        Ok(Some(answered)) => return Ok(answered),
        Ok(None) => {}
        Err(error) => print::remark(&format!("The background server is not asked: {error:#}.\n")),
    }
    loader::with_server(program, folder, async |url, password| {
        Ok(Answered {
            who: "an OpenCode 2 that was started for it".to_owned(),
            plugins: plugins(url, password, folder).await?,
        })
    })
    .await
}

/// Asks the background server, if one runs.
pub(super) async fn ask_running(folder: &Path) -> anyhow::Result<Option<Answered>> {
    let file = service_file(|name| env::var_os(name));
    let running = file.map(|file| Service::read(&file)).transpose()?.flatten();
    let Some(service) = running else {
        return Ok(None);
    };
    let plugins = plugins(&service.url, &service.password, folder).await?;
    let who = format!("the OpenCode 2 that runs (process {})", service.pid);
    Ok(Some(Answered { who, plugins }))
}

/// The plugins of a folder, as soon as there are any.
async fn plugins(url: &str, password: &Secret, folder: &Path) -> anyhow::Result<Vec<Listed>> {
    #[derive(Deserialize)]
    struct Body {
        data: Vec<Listed>,
    }
    let folder = folder.to_str().context("the folder's name is not UTF-8")?;
    let url = format!("{url}/api/plugin");
    let url = Url::parse_with_params(&url, [("location[directory]", folder)])?;
    // A password goes nowhere else.
    let client = asyncagents_http::builder(&url).no_proxy().build()?;
    let begun = Instant::now();
    loop {
        let request = client
            .get(url.clone())
            .basic_auth("opencode", Some(password.reveal()))
            .timeout(ANSWER);
        let answer = request.send().await.context("OpenCode 2 does not answer")?;
        let status = answer.status();
        if status != StatusCode::OK {
            bail!("OpenCode 2 did not name its plugins: {status}");
        }
        let text = loader::short_text(answer).await?;
        let body: Body =
            serde_json::from_str(&text).context("OpenCode's list of plugins cannot be read")?;
        if !body.data.is_empty() || begun.elapsed() > LOAD {
            return Ok(body.data);
        }
        sleep(AGAIN).await;
    }
}
