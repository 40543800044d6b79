//! Another agent keeps what the port promises of a host.

use std::sync::Arc;

use async_trait::async_trait;
use asyncagents_core::{id::SessionId, port::Host};
use asyncagents_testkit::host_contract::{Abilities, Site, host_contract};

use crate::{
    fake::{self, ASKS, FakeAgent},
    world::World,
};

#[async_trait]
impl Site for World {
    fn abilities(&self) -> Abilities {
        Abilities {
            keeps_posts_once: true,
            has_foreign_sessions: true,
            ..Abilities::default()
        }
    }

    fn host(&self) -> Arc<dyn Host> {
        Arc::new(World::host(self))
    }

    async fn parent(&self) -> SessionId {
        World::parent(self).await
    }

    async fn shown(&self, session: &SessionId) -> String {
        World::shown(self, session)
    }

    fn asks_for_permission_on(&self) -> &'static str {
        ASKS
    }

    async fn restart(&self) {
        World::restart(self).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_speaks_acp_keeps_the_promises_of_a_host() {
    host_contract(async || World::new(FakeAgent::default())).await;
}

/// One that cannot be told anything in the middle of its work.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_cannot_be_steered_keeps_the_promises_of_a_host() {
    let abilities = fake::Abilities {
        steers: false,
        ..fake::Abilities::default()
    };
    host_contract(async || World::new(FakeAgent::with(abilities.clone()))).await;
}
