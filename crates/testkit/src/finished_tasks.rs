//! A journal as it is after a long time: tasks that have finished, with all that is kept of them.

use std::ops::Range;

use asyncagents_core::{
    agent::{Answer, Block, End, Entry, Stop, Usage},
    budget::{Budget, Cost, Spent},
    event::{Event, Launched},
    host_ref::HostRef,
    id::{ChainId, SessionId, TaskId},
    moment::Moment,
    notify::Message,
    port::{Content, Journal, NoticeText, Post, Session, Store, StoreError, Stored, transact},
    progress::Observation,
    task::{Brief, Context, Outcome, Place, Task},
};

/// How many are saved in one transaction.
const AT_ONCE: u128 = 500;

/// Tasks of one session that have ended at one moment.
#[derive(Debug, Clone)]
pub struct FinishedTasks {
    pub parent: SessionId,
    pub ended: Moment,
    /// What each has read and said, in a session of the built-in agent; none if it had none.
    pub conversation: Option<String>,
}

impl FinishedTasks {
    /// Of the command line, as the scripted host leaves them.
    pub fn of_shell(ended: Moment) -> Self {
        Self {
            parent: "shell".into(),
            ended,
            conversation: None,
        }
    }

    /// Saves those with these numbers.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn save(&self, store: &dyn Store, numbers: Range<u128>) -> Result<(), StoreError> {
        let mut from = numbers.start;
        while from < numbers.end {
            let until = numbers.end.min(from + AT_ONCE);
            let tasks = self.clone();
            transact(store, move |journal| {
                (from..until).try_for_each(|number| tasks.save_one(journal, number))
            })
            .await?;
            from = until;
        }
        Ok(())
    }

    fn save_one(&self, journal: &mut dyn Journal, number: u128) -> Stored<()> {
        let id = task_id(number);
        let launched = self.launched(&id, number, journal.open_batch(&self.parent)?);
        let mut task = journal.insert(id.clone(), launched, self.ended)?;
        let session = SessionId::from(format!("ses_{:032x}", spread(number)).as_str());
        let answer = "The slow query has no index.".to_owned();
        let called = Observation::ToolCalled {
            tool: "read".to_owned(),
            call: 7,
        };
        let events = [
            Event::Started,
            Event::SessionMade {
                session: session.clone(),
            },
            Event::Prompted,
            Event::Observed(called),
            Event::Observed(Observation::Turned(Spent::answer(1_200, Cost(360), 0))),
            Event::Ended {
                outcome: Outcome::Completed,
                answer: Some(answer.clone()),
                stop: false,
            },
        ];
        journal.append(&mut task, &events, self.ended)?;
        self.save_notice(journal, &task)?;
        match &self.conversation {
            Some(text) => self.save_conversation(journal, &task, session, text, answer),
            None => Ok(()),
        }
    }

    fn launched(&self, id: &TaskId, number: u128, batch: u64) -> Launched {
        let root = format!("{}/{id}", self.parent);
        Launched {
            place: Place {
                parent: self.parent.clone(),
                above: None,
                root: root.as_str().into(),
                depth: 1,
                outside: None,
                above_in: None,
            },
            brief: Brief {
                description: format!("look at query {number}"),
                agent: "general".into(),
                model: None,
                effort: None,
                context: Context::Fresh,
                host: HostRef::from("scripted").into(),
            },
            prompt: format!("Find out why query {number} is slow, and say how to make it faster."),
            fork: None,
            budget: Budget::default(),
            batch,
            owner: None,
            chain: Some(ChainId::from(format!("{:032x}", spread(number)))),
            from: None,
            role: None,
        }
    }

    fn save_notice(&self, journal: &mut dyn Journal, task: &Task) -> Stored<()> {
        let post = Post {
            id: task.id.notice(0),
            to: self.parent.clone(),
            run: 0,
            content: Content::Notice(NoticeText::Worded(Message {
                visible: format!("✓ **Agent \"{}\" finished.**", task.brief.description),
                hidden: "All tasks finished.".to_owned(),
            })),
        };
        journal.post(task, &post, self.ended)?;
        journal.delivered(&post.id, self.ended)
    }

    fn save_conversation(
        &self,
        journal: &mut dyn Journal,
        task: &Task,
        id: SessionId,
        text: &str,
        answer: String,
    ) -> Stored<()> {
        journal.begin_session(&Session {
            id: id.clone(),
            task: Some(task.id.clone()),
            title: task.brief.description.clone(),
            agent: task.brief.agent.clone(),
            model: "test/model".into(),
            system: "You are a helpful agent.".to_owned(),
            delegates: true,
            workspace: "/work".to_owned(),
            terms: None,
            base: None,
            begun: self.ended,
        })?;
        let entries = [
            Entry::Prompted {
                post: task.id.prompt(0),
                text: "Find out why it is slow.".to_owned(),
                agent: task.brief.agent.clone(),
                model: None,
                chain: None,
            },
            Entry::Answered {
                seen: 1,
                answer: said(text),
            },
            Entry::Ended {
                prompt: task.id.prompt(0),
                end: End::Answered,
                answer: Some(answer),
            },
        ];
        for entry in entries {
            journal.file(&id, &entry, self.ended)?;
        }
        Ok(())
    }
}

/// The ID of the task with a number.
pub fn task_id(number: u128) -> TaskId {
    TaskId::from_random(spread(number))
}

/// Numbers that begin differently, as random ones do.
fn spread(number: u128) -> u128 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835)
}

fn said(text: &str) -> Answer {
    Answer {
        model: "test/model".into(),
        blocks: vec![Block::Text(text.to_owned())],
        stop: Stop::Finished,
        usage: Usage::default(),
        cost: None,
    }
}
