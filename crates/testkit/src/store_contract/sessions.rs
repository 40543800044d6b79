//! Sessions of the built-in agent and their entries.

use std::sync::Arc;

use asyncagents_core::{
    agent::{Answer, Block, Call, End, Entry, Raw, Stop, ToolOutcome, Usage},
    budget::Cost,
    fallback::Fallback,
    id::SessionId,
    port::{Base, Journal, Session, Stored},
    trace::RunEnd,
};

use super::{
    Site, on_new,
    samples::{at, id, launched, session, session_with_all, task_with},
};

fn prompted(post: &str) -> Entry {
    Entry::Prompted {
        post: post.into(),
        text: "t".to_owned(),
        agent: "general".into(),
        model: Some("test/other".into()),
        chain: Some(format!("0198-{post}").into()),
    }
}

fn run_ended(prompt: &str, end: End, answer: Option<&str>) -> Entry {
    Entry::Ended {
        prompt: prompt.into(),
        end,
        answer: answer.map(str::to_owned),
    }
}

fn tool_ended(call: &str, outcome: ToolOutcome) -> Entry {
    Entry::ToolEnded {
        call: call.to_owned(),
        outcome,
    }
}

fn answer(stop: Stop) -> Answer {
    Answer {
        model: "test/model".into(),
        blocks: vec![
            Block::Reasoning {
                text: "hm".to_owned(),
                raw: Some(Raw {
                    wire: "anthropic@test".to_owned(),
                    json: r#"{"type":"thinking","signature":"x\u0000"}"#.to_owned(),
                }),
            },
            Block::Text("Grüße \u{1F600}".to_owned()),
            Block::Call(Call {
                id: "1".to_owned(),
                name: "bash".to_owned(),
                input: "{\"command\": \"ls".to_owned(),
            }),
            Block::Other(Raw {
                wire: "w".to_owned(),
                json: "{}".to_owned(),
            }),
        ],
        stop,
        usage: Usage {
            input: 1,
            cache_read: 2,
            cache_write: 3,
            output: 4,
        },
        cost: Some(Cost(5)),
    }
}

fn every_kind() -> Vec<Entry> {
    let failed = "w".to_owned();
    let mut entries = vec![
        Entry::Inherited {
            post: "i".into(),
            preamble: "p".to_owned(),
            context: "c".to_owned(),
        },
        prompted("p"),
        Entry::Notice {
            post: "t".into(),
            visible: "v".to_owned(),
            hidden: "h".to_owned(),
        },
        Entry::Nudged {
            text: "n".to_owned(),
        },
        Entry::FellBack(Fallback {
            from: Some("test/one".into()),
            to: "test/two".into(),
            why: "quota".to_owned(),
        }),
        Entry::LastTurn {
            why: "l".to_owned(),
            fails: true,
        },
        Entry::ToolBegan {
            call: "1".to_owned(),
        },
        tool_ended("1", ToolOutcome::Done("d".to_owned())),
        tool_ended("2", ToolOutcome::Failed("f".to_owned())),
        tool_ended("3", ToolOutcome::Unknown),
        Entry::Compacted {
            seen: 9,
            // A model without a price.
            answer: Answer {
                cost: None,
                ..answer(Stop::Finished)
            },
        },
        run_ended("p", End::Answered, Some("a")),
        run_ended("p", End::Aborted, None),
        run_ended(
            "p",
            End::Broken {
                why: failed.clone(),
            },
            None,
        ),
        run_ended("p", End::Failed { why: failed }, None),
    ];
    let stops = [Stop::Finished, Stop::Tools, Stop::Length, Stop::Refused];
    let answered = |stop| Entry::Answered {
        seen: 4,
        answer: answer(stop),
    };
    entries.extend(stops.map(answered));
    entries
}

pub(super) async fn a_session_is_read_as_it_was_begun(site: Arc<dyn Site>) {
    let read = on_new(&site, |journal| {
        journal.begin_session(&session("ses_1"))?;
        journal.begin_session(&session_with_all("ses_2"))?;
        Ok((
            journal.session(&"ses_1".into())?,
            journal.session(&"ses_2".into())?,
            journal.session_for(&id(1))?,
            journal.session(&"ses_3".into())?,
        ))
    });
    let (plain, full, for_task, unknown) = read.await;
    assert_eq!(plain, Some(session("ses_1")));
    assert_eq!(full, Some(session_with_all("ses_2")));
    assert_eq!(for_task, Some("ses_2".into()));
    assert_eq!(unknown, None);
}

pub(super) async fn every_kind_of_entry_is_read_as_it_was_written(site: Arc<dyn Site>) {
    let (read, some) = on_new(&site, |journal| {
        let session = "ses_1".into();
        for (entry, n) in every_kind().iter().zip(1..) {
            journal.file(&session, entry, at(n))?;
        }
        let all = journal.entries(&session, 0, u64::MAX)?;
        Ok((all, journal.entries(&session, 2, 4)?))
    })
    .await;
    let numbers: Vec<u64> = read.iter().map(|filed| filed.seq).collect();
    assert_eq!(numbers, (1..=every_kind().len() as u64).collect::<Vec<_>>());
    assert_eq!(some, read[2..4]);
    assert_eq!(read[3].at, at(4));
    let entries: Vec<Entry> = read.into_iter().map(|filed| filed.entry).collect();
    assert_eq!(entries, every_kind());
}

pub(super) async fn an_entry_with_a_known_name_is_not_added_again(site: Arc<dyn Site>) {
    let seen = on_new(&site, |journal| {
        let (one, other) = ("ses_1".into(), "ses_2".into());
        let mut numbers = Vec::new();
        for (session, post) in [(&one, "p"), (&one, "q"), (&one, "p"), (&other, "p")] {
            numbers.push(journal.file(session, &prompted(post), at(1))?);
        }
        let posted = [(&one, "q"), (&other, "q")];
        let posted = posted.map(|(session, post)| journal.posted(session, &post.into()));
        Ok((numbers, posted, journal.entries(&one, 0, 9)?.len()))
    });
    let (numbers, posted, many) = seen.await;
    assert_eq!(numbers, [1, 2, 1, 1]);
    assert_eq!(posted, [Ok(true), Ok(false)]);
    assert_eq!(many, 2);
}

fn names(sessions: &[Session]) -> Vec<&str> {
    sessions.iter().map(|found| found.id.as_str()).collect()
}

fn begin(journal: &mut dyn Journal, name: &str, folder: &str, begun: i64) -> Stored<()> {
    journal.begin_session(&Session {
        workspace: folder.to_owned(),
        begun: at(begun),
        ..session(name)
    })
}

pub(super) async fn the_newest_sessions_of_a_person_are_found(site: Arc<dyn Site>) {
    let seen = on_new(&site, |journal| {
        begin(journal, "ses_a", "/work", 1)?;
        begin(journal, "ses_b", "/work", 3)?;
        begin(journal, "ses_c", "/home", 2)?;
        begin(journal, "ses_ad", "/work", 9)?;
        journal.delete_session(&"ses_ad".into())?;
        journal.begin_session(&session_with_all("ses_task"))?;
        task_with(journal, 1, launched("ses_ab"), &[])?;
        Ok((
            journal.newest_session("/work")?,
            journal.newest_sessions(Some("/work"), 9)?,
            journal.newest_sessions(None, 2)?,
            journal.sessions_beginning_with("ses_a", 9)?,
            journal.sessions_beginning_with("ses_%", 9)?,
            journal.sessions_beginning_with("", 2)?,
        ))
    });
    let (newest, here, anywhere, beginning, none, two) = seen.await;
    assert_eq!(newest.map(|found| found.id), Some("ses_b".into()));
    assert_eq!(names(&here), ["ses_b", "ses_a"]);
    assert_eq!(names(&anywhere), ["ses_b", "ses_c"]);
    let expected: [SessionId; 2] = ["ses_a".into(), "ses_ab".into()];
    assert_eq!(beginning, expected, "parents of tasks too");
    assert_eq!(none, []);
    assert_eq!(two, expected);
}

pub(super) async fn a_deleted_session_still_serves_those_that_begin_with_it(site: Arc<dyn Site>) {
    let seen = on_new(&site, |journal| {
        let name = "ses_2".into();
        journal.begin_session(&session_with_all("ses_2"))?;
        journal.begin_session(&session("ses_3"))?;
        journal.file(&name, &prompted("p"), at(1))?;
        journal.delete_session(&name)?;
        let kept = journal.session(&"ses_3".into())?.is_some();
        journal.delete_all_sessions()?;
        Ok((
            kept,
            journal.session(&name)?,
            journal.session(&"ses_3".into())?,
            journal.session_for(&id(1))?,
            journal.base_of(&name)?,
            journal.entries(&name, 0, 9)?.len(),
        ))
    });
    let (kept, deleted, others, for_task, base, entries) = seen.await;
    assert!(kept);
    assert_eq!((deleted, others), (None, None));
    assert_eq!(for_task, Some("ses_2".into()));
    let expected = Base {
        session: "ses_base".into(),
        until: 3,
    };
    assert_eq!(base, Some(expected));
    assert_eq!(entries, 1);
}

pub(super) async fn one_driver_at_a_time_writes(site: Arc<dyn Site>) {
    let seen = on_new(&site, |journal| {
        let name = "ses_1".into();
        journal.begin_session(&session("ses_1"))?;
        let mut drivers = vec![journal.driver(&name)?];
        for driver in ["one", "other"] {
            journal.drive(&name, driver)?;
            drivers.push(journal.driver(&name)?);
        }
        journal.delete_session(&name)?;
        drivers.push(journal.driver(&name)?);
        Ok(drivers)
    });
    let driver = |name: &str| Some(name.to_owned());
    assert_eq!(seen.await, [None, driver("one"), driver("other"), None]);
}

pub(super) async fn a_run_is_open_until_its_end_is_filed(site: Arc<dyn Site>) {
    let seen = on_new(&site, |journal| {
        let session = "ses_1".into();
        let mut open = vec![journal.open_prompt(&session)?];
        let end = run_ended("p", End::Answered, Some("a"));
        for entry in [prompted("p"), end, prompted("q")] {
            journal.file(&session, &entry, at(1))?;
            open.push(journal.open_prompt(&session)?);
        }
        let over = journal.end_of(&session, &"p".into())?;
        Ok((open, over, journal.end_of(&session, &"q".into())?))
    });
    let (open, over, not_yet) = seen.await;
    assert_eq!(open, [None, Some("p".into()), None, Some("q".into())]);
    assert_eq!(over, Some(run_ended("p", End::Answered, Some("a"))));
    assert_eq!(not_yet, None);
}

pub(super) async fn a_run_is_summed_up_however_long_it_is(site: Arc<dyn Site>) {
    let seen = on_new(&site, |journal| {
        let session = "ses_1".into();
        let answered = || Entry::Answered {
            seen: 1,
            answer: answer(Stop::Tools),
        };
        let unpriced = Entry::Compacted {
            seen: 1,
            answer: Answer {
                cost: None,
                ..answer(Stop::Finished)
            },
        };
        let done = tool_ended("1", ToolOutcome::Done("d".to_owned()));
        let entries = [
            prompted("p"),
            answered(),
            done.clone(),
            answered(),
            run_ended("p", End::Answered, Some("a")),
            prompted("q"),
            unpriced,
            answered(),
            done,
        ];
        for (entry, time) in entries.iter().zip(1..) {
            journal.file(&session, entry, at(time))?;
        }
        let missing = journal.run_summary(&session, &"r".into())?;
        let first = journal.run_summary(&session, &"p".into())?;
        Ok((missing, first, journal.run_summary(&session, &"q".into())?))
    });
    let (missing, first, second) = seen.await;
    assert_eq!(missing, None);
    let first = first.expect("the first run");
    let end = RunEnd {
        end: End::Answered,
        answer: Some("a".to_owned()),
        at: at(5),
    };
    assert_eq!(first.end, Some(end));
    assert_eq!((first.agent.as_str(), &*first.request), ("general", "t"));
    let used = first.used;
    assert_eq!((used.usage.input, used.usage.output), (2, 8));
    assert_eq!((used.spent.tokens, used.spent.cost), (20, Cost(10)));
    assert_eq!((used.spent.turns, used.spent.tool_calls), (2, 2));
    let second = second.expect("the second run");
    assert_eq!(second.end, None);
    let used = second.used.spent;
    assert_eq!((used.tokens, used.cost, used.unpriced), (20, Cost(5), 10));
    assert_eq!((used.turns, used.tool_calls), (2, 1));
}
