//! Where traces begin.

use std::sync::Arc;

use asyncagents_core::{
    agent::{End, Entry},
    event::{Event, Launched},
    id::ChainId,
    trace::{Chain, ChainOf},
};

use super::{
    Site, on_new,
    samples::{at, completed, id, launched, task_with},
};

fn traced(chain: &str, from: Option<&str>) -> Launched {
    Launched {
        chain: Some(chain.into()),
        from: from.map(Into::into),
        ..launched("main")
    }
}

fn names(chains: &[Chain]) -> Vec<&str> {
    chains.iter().map(|chain| chain.id.as_str()).collect()
}

pub(super) async fn a_chain_begins_with_a_run_of_a_task(site: Arc<dyn Site>) {
    let seen = on_new(&site, |journal| {
        let made = Event::SessionMade {
            session: "ses_child".into(),
        };
        let resumed = Event::Resumed {
            prompt: "go on".to_owned(),
            batch: 0,
            chain: Some("a-2".into()),
            from: Some("c".into()),
        };
        let events = [Event::Started, made, completed("done"), resumed];
        task_with(journal, 1, traced("a-1", Some("b")), &events)?;
        let open = journal.open_chain(&"ses_child".into())?;
        Ok((journal.chains_of(&id(1))?, open))
    });
    let (chains, open) = seen.await;
    let chain = |name: &str, parent: &str, run, begun| Chain {
        id: name.into(),
        parent: Some(parent.into()),
        of: ChainOf::Task { task: id(1), run },
        begun: at(begun),
    };
    assert_eq!(chains, [chain("a-1", "b", 0, 1), chain("a-2", "c", 1, 2)]);
    assert_eq!(open, Some(ChainId::from("a-2")));
}

pub(super) async fn a_chain_begins_with_the_prompt_of_a_person(site: Arc<dyn Site>) {
    let seen = on_new(&site, |journal| {
        let session = "ses_1".into();
        let prompt = |post: &str, chain: &str| Entry::Prompted {
            post: post.into(),
            text: "Hello".to_owned(),
            agent: "general".into(),
            model: None,
            chain: Some(chain.into()),
        };
        journal.file(&session, &prompt("p", "a"), at(5))?;
        // A name that is known is not begun again.
        journal.file(&session, &prompt("q", "a"), at(6))?;
        let end = |prompt: &str| Entry::Ended {
            prompt: prompt.into(),
            end: End::Answered,
            answer: None,
        };
        journal.file(&session, &end("q"), at(7))?;
        let closed = journal.open_chain(&session)?;
        journal.file(&session, &prompt("r", "b"), at(8))?;
        let chains = journal.newest_chains(9)?;
        Ok((chains, closed, journal.open_chain(&session)?))
    });
    let (chains, closed, open) = seen.await;
    let chain = |name: &str, prompt: &str, begun| Chain {
        id: name.into(),
        parent: None,
        of: ChainOf::Session {
            session: "ses_1".into(),
            prompt: prompt.into(),
        },
        begun: at(begun),
    };
    assert_eq!(chains, [chain("b", "r", 8), chain("a", "p", 5)]);
    assert_eq!((closed, open), (None, Some("b".into())));
}

pub(super) async fn chains_are_found_by_the_beginning_of_their_name_and_by_age(
    site: Arc<dyn Site>,
) {
    let seen = on_new(&site, |journal| {
        // All of one moment: the order is the order in which they began.
        let begun = ["ab-2", "ab-1", "ac-3"];
        for (n, chain) in begun.into_iter().enumerate() {
            task_with(journal, n as u128, traced(chain, None), &[])?;
        }
        for (n, chain) in [(7, "bb-2"), (8, "bb-1")] {
            task_with(journal, n, traced(chain, Some("ab-1")), &[])?;
        }
        Ok((
            journal.chains_beginning_with("ab")?,
            journal.chains_below(&"ab-1".into())?,
            journal.newest_chains(2)?,
        ))
    });
    let (mut beginning, below, newest) = seen.await;
    beginning.sort_by(|one, other| one.id.cmp(&other.id));
    assert_eq!(names(&beginning), ["ab-1", "ab-2"]);
    assert_eq!(names(&below), ["bb-2", "bb-1"]);
    assert_eq!(names(&newest), ["ac-3", "ab-1"], "not those below another");
}
