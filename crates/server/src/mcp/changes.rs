//! Tells a client when the skills or the agents are not as it was shown them.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::{Arc, Mutex},
    time::Duration,
};

use asyncagents_core::lock::lock;
use rmcp::{
    RoleServer,
    service::{Peer, SubscriptionContext},
};
use tokio::time;

use super::{UserSkill, WhoCalls};

/// How often the folders of skills and agents are looked into, once a client was shown what is in them.
/// They may not exist yet, so there is nothing to watch.
const INTERVAL: Duration = Duration::from_secs(5);

/// The lists that a client was shown last, as digests.
#[derive(Default)]
pub(super) struct Lists(Mutex<Digests>);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Digests {
    tools: Option<u64>,
    prompts: Option<u64>,
}

/// What has changed since a client was shown it.
struct Changed {
    tools: bool,
    prompts: bool,
}

impl Lists {
    pub(super) fn show_tools(&self, disclosed: Option<&str>, agents: &[String]) {
        lock(&self.0).tools = Some(of_tools(disclosed, agents));
    }

    pub(super) fn show_prompts(&self, skills: &[UserSkill]) {
        lock(&self.0).prompts = Some(digest(&skills));
    }

    /// Tells a client that has initialized of each change, as long as it is there.
    pub(super) async fn tell(&self, who: &Arc<dyn WhoCalls>, peer: &Peer<RoleServer>) {
        let mut told = Digests::default();
        loop {
            let changed = self.change(who, &mut told).await;
            // A client that does not hear it lists them some other time.
            if changed.tools {
                let _ = peer.notify_tool_list_changed().await;
            }
            if changed.prompts {
                let _ = peer.notify_prompt_list_changed().await;
            }
        }
    }

    /// Tells a subscription of each change that it is about.
    pub(super) async fn tell_subscription(
        &self,
        who: &Arc<dyn WhoCalls>,
        subscription: &SubscriptionContext,
    ) {
        let (accepted, sink) = (subscription.accepted(), subscription.sink());
        let mut told = Digests::default();
        loop {
            let changed = self.change(who, &mut told).await;
            if changed.tools && accepted.tools_list_changed == Some(true) {
                let _ = sink.notify_tool_list_changed().await;
            }
            if changed.prompts && accepted.prompts_list_changed == Some(true) {
                let _ = sink.notify_prompt_list_changed().await;
            }
        }
    }

    /// Waits until something is neither as it was shown nor as it was told.
    async fn change(&self, who: &Arc<dyn WhoCalls>, told: &mut Digests) -> Changed {
        loop {
            time::sleep(INTERVAL).await;
            let shown = *lock(&self.0);
            if shown == Digests::default() {
                continue;
            }
            let now = look(who).await;
            let is_new = |shown: Option<u64>, told: Option<u64>, now: Option<u64>| {
                shown.is_some() && shown != now && told != now
            };
            let changed = Changed {
                tools: is_new(shown.tools, told.tools, now.tools),
                prompts: is_new(shown.prompts, told.prompts, now.prompts),
            };
            *told = now;
            if changed.tools || changed.prompts {
                return changed;
            }
        }
    }
}

/// What there is now.
async fn look(who: &Arc<dyn WhoCalls>) -> Digests {
    let skills = who.clone();
    let read = move || (skills.disclosed(), digest(&skills.user_skills()));
    let Ok((disclosed, prompts)) = tokio::task::spawn_blocking(read).await else {
        return Digests::default();
    };
    Digests {
        tools: Some(of_tools(disclosed.as_deref(), &who.agents().await)),
        prompts: Some(prompts),
    }
}

fn of_tools(disclosed: Option<&str>, agents: &[String]) -> u64 {
    digest(&(disclosed, agents))
}

fn digest(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
