//! A session of a person in the built-in agent, for agents that have none of their own.
#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use asyncagents_core::{
    agent::{Answer, Block, End, Entry, Stop, Usage},
    id::SessionId,
    moment::Moment,
    port::{Session, Store, StoreError, transact},
};

use crate::host_contract::{Does, SCRIPT};

/// One in which a person has asked the first prompt of the script, and was answered.
pub async fn answered_person(store: &dyn Store, begun: Moment) -> SessionId {
    let (asked, Does::Answer(answer)) = SCRIPT[0] else {
        panic!("a parent is answered");
    };
    let id: SessionId = "ses_parent".into();
    let session = Session {
        id: id.clone(),
        task: None,
        title: "a person".to_owned(),
        agent: "general".into(),
        model: "a/b".into(),
        system: String::new(),
        delegates: true,
        workspace: "/project".to_owned(),
        terms: None,
        base: None,
        begun,
    };
    let entries = [
        Entry::Prompted {
            post: "person.prompt".into(),
            text: asked.to_owned(),
            agent: "general".into(),
            model: None,
            chain: None,
        },
        Entry::Answered {
            seen: 1,
            answer: Answer {
                model: "a/b".into(),
                blocks: vec![Block::Text(answer.to_owned())],
                stop: Stop::Finished,
                usage: Usage::default(),
                cost: None,
            },
        },
        Entry::Ended {
            prompt: "person.prompt".into(),
            end: End::Answered,
            answer: Some(answer.to_owned()),
        },
    ];
    let made = transact(store, move |journal| {
        journal.begin_session(&session)?;
        for entry in &entries {
            journal.file(&session.id, entry, begun)?;
        }
        Ok::<_, StoreError>(())
    });
    made.await.expect("a parent");
    id
}
