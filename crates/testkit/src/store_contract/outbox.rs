//! Notices to parents.

use std::sync::Arc;

use asyncagents_core::{
    event::Event,
    host_ref::HostRef,
    id::{OwnerId, PostId},
    moment::Moment,
    notify::Message,
    port::{Content, Fate, Journal, NoticeText, PendingPost, Post, Stored, ToldOfBatch},
    question::Reply,
    task::Task,
};

use super::{
    Site, on_new,
    samples::{at, completed, id, notice, owned, task_with},
    write,
};

/// A task that has ended, with a notice that may be sent from a moment on.
fn posted(journal: &mut dyn Journal, n: u128, owner: &str, not_before: i64) -> Stored<Task> {
    let parent = format!("parent-{owner}");
    let task = task_with(journal, n, owned(&parent, owner), &[completed("done")])?;
    journal.post(&task, &notice(&task), at(not_before))?;
    Ok(task)
}

/// The posts that are due, all of which can be read.
fn due(
    journal: &mut dyn Journal,
    owner: &OwnerId,
    now: Moment,
    after: i64,
    most: usize,
) -> Stored<Vec<PendingPost>> {
    let found = journal.due(owner, now, after, most)?;
    let found: Result<_, _> = found.into_iter().collect();
    Ok(found.expect("readable"))
}

fn names(due: &[PendingPost]) -> Vec<PostId> {
    due.iter().map(|due| due.post.id.clone()).collect()
}

fn fate(journal: &mut dyn Journal, task: &Task) -> Stored<Vec<Fate>> {
    let posts = journal.posts(&task.id)?;
    Ok(posts.into_iter().map(|post| post.fate).collect())
}

pub(super) async fn notices_are_due_in_order_page_by_page(site: Arc<dyn Site>) {
    let seen = on_new(&site, |journal| {
        let me = "me".into();
        for (n, not_before) in [(5, 30), (4, 10), (3, 20), (2, 90)] {
            posted(journal, n, "me", not_before)?;
        }
        posted(journal, 1, "you", 10)?;
        let first = due(journal, &me, at(30), 0, 2)?;
        let after = first.last().map_or(0, |last| last.place);
        let second = due(journal, &me, at(30), after, 2)?;
        let next = journal.next_due(&me, at(30))?;
        let never = journal.next_due(&me, at(90))?;
        Ok((first, names(&second), next, never))
    });
    let (first, second, next, never) = seen.await;
    let name = |n| id(n).notice(0);
    assert_eq!(
        names(&first),
        [name(5), name(4)],
        "as they came, not as they are due"
    );
    assert_eq!(second, [name(3)]);
    assert_eq!((next, never), (Some(at(90)), None));
    let found = &first[0];
    let Content::Notice(NoticeText::Unsent { batch: 0, end }) = &found.post.content else {
        panic!("{:?}", found.post.content);
    };
    assert_eq!(end.headline, format!("{} has ended", id(5)));
    assert_eq!(found.task, id(5));
    assert_eq!(
        (&found.post.to, &found.host),
        (&"parent-me".into(), &HostRef::from("scripted").into())
    );
    assert_eq!((found.attempted, found.attempts), (None, 0));
}

pub(super) async fn a_notice_is_posted_once(site: Arc<dyn Site>) {
    let store = site.open();
    let task = on_new(&site, |journal| posted(journal, 1, "me", 1)).await;
    let again = task.clone();
    let posted = write(&store, move |journal| {
        journal.post(&again, &notice(&again), at(2))
    });
    assert!(posted.await.is_err());
    let fates = write(&store, move |journal| fate(journal, &task)).await;
    assert_eq!(fates, Ok(vec![Fate::Pending]));
}

pub(super) async fn a_notice_is_marked_by_one_worker_only(site: Arc<dyn Site>) {
    let seen = on_new(&site, |journal| {
        let (me, you) = ("me".into(), "you".into());
        posted(journal, 1, "me", 1)?;
        let mut found = due(journal, &me, at(1), 0, 9)?;
        let found = found.remove(0);
        let marks = [
            // The notice is another worker's.
            journal.sending(&found, &you, at(2))?,
            journal.sending(&found, &me, at(3))?,
            // It was marked since it was found.
            journal.sending(&found, &me, at(4))?,
        ];
        let marked = due(journal, &me, at(5), 0, 9)?.remove(0);
        let again = journal.sending(&marked, &me, at(6))?;
        journal.delivered(&found.post.id, at(7))?;
        let marked_now = PendingPost {
            attempted: Some(at(6)),
            ..marked.clone()
        };
        let over = journal.sending(&marked_now, &me, at(8))?;
        Ok((marks, marked.attempted, again, over))
    });
    let (marks, attempted, again, over) = seen.await;
    assert_eq!(marks, [false, true, false]);
    assert_eq!(attempted, Some(at(3)));
    assert!(again && !over);
}

pub(super) async fn a_notice_that_is_put_off_comes_again(site: Arc<dyn Site>) {
    let seen = on_new(&site, |journal| {
        let me = "me".into();
        let task = posted(journal, 1, "me", 1)?;
        let name = notice(&task).id;
        journal.put_off(&name, at(50), Some(at(2)))?;
        let early = due(journal, &me, at(49), 0, 9)?.len();
        let mut late = due(journal, &me, at(50), 0, 9)?;
        let first = late.remove(0);
        journal.put_off(&name, at(60), None)?;
        let second = due(journal, &me, at(60), 0, 9)?.remove(0);
        Ok((early, first, second))
    });
    let (early, first, second) = seen.await;
    assert_eq!(early, 0);
    assert_eq!((first.attempted, first.attempts), (Some(at(2)), 1));
    assert_eq!((second.attempted, second.attempts), (None, 2));
}

pub(super) async fn notices_that_may_have_been_sent_settle_first(site: Arc<dyn Site>) {
    let seen = on_new(&site, |journal| {
        let me = "me".into();
        let (sent, fresh) = (posted(journal, 1, "me", 1)?, posted(journal, 2, "me", 1)?);
        let found = due(journal, &me, at(1), 0, 1)?.remove(0);
        journal.sending(&found, &me, at(2))?;
        for task in [&sent, &fresh] {
            journal.postpone_posts(&task.id, at(10), at(20))?;
        }
        let early = names(&due(journal, &me, at(19), 0, 9)?);
        let settled = due(journal, &me, at(20), 0, 1)?.remove(0);
        Ok((early, settled.attempted))
    });
    let (early, attempted) = seen.await;
    assert_eq!(early, [id(2).notice(0)]);
    assert_eq!(attempted, Some(at(10)));
}

pub(super) async fn a_parent_that_is_ready_hurries_its_notices(site: Arc<dyn Site>) {
    let seen = on_new(&site, |journal| {
        let parent = "parent-me".into();
        let nothing = journal.any_pending(&parent)?;
        let task = posted(journal, 1, "me", 100)?;
        posted(journal, 2, "you", 100)?;
        let pending = journal.any_pending(&parent)?;
        // One that waits for others to be told with waits on; one that was put off does not.
        let waiting = journal.hurry(&parent, at(5))?;
        for (n, owner) in [(1, "me"), (2, "you")] {
            let found = due(journal, &owner.into(), at(100), 0, 9)?.remove(0);
            assert_eq!(found.task, id(n));
            journal.put_off(&found.post.id, at(100), None)?;
        }
        let hurried = [
            waiting,
            journal.hurry(&parent, at(5))?,
            journal.hurry(&parent, at(5))?,
        ];
        let due = ["me", "you"].map(|owner| due(journal, &owner.into(), at(5), 0, 9));
        journal.delivered(&notice(&task).id, at(6))?;
        let over = journal.any_pending(&parent)?;
        Ok((
            nothing,
            pending,
            hurried,
            due.map(|due| due.map(|due| due.len())),
            over,
        ))
    });
    let (nothing, pending, hurried, due, over) = seen.await;
    assert!(!nothing && pending && !over);
    assert_eq!(hurried, [false, true, false]);
    assert_eq!(due, [Ok(1), Ok(0)]);
}

pub(super) async fn a_notice_has_one_fate(site: Arc<dyn Site>) {
    let fates = on_new(&site, |journal| {
        let me = "me".into();
        let tasks = [1, 2, 3, 4].map(|n| posted(journal, n, "me", 1));
        let [told, untold, withdrawn, sent] = tasks;
        let (told, untold, withdrawn, sent) = (told?, untold?, withdrawn?, sent?);
        let name = |task: &Task| notice(task).id;
        journal.delivered(&name(&told), at(2))?;
        journal.undelivered(&name(&told), "too late", at(3))?;
        journal.undelivered(&name(&untold), "gone", at(2))?;
        journal.delivered(&name(&untold), at(3))?;
        journal.withdraw(&name(&withdrawn), "cleared", at(2))?;
        // What may have been sent cannot be taken back.
        let found = due(journal, &me, at(1), 0, 9)?.remove(0);
        journal.sending(&found, &me, at(2))?;
        journal.withdraw(&name(&sent), "cleared", at(3))?;
        let all = [&told, &untold, &withdrawn, &sent];
        let fates = all.map(|task| fate(journal, task));
        fates.into_iter().collect::<Stored<Vec<_>>>()
    });
    assert_eq!(
        fates.await.concat(),
        [
            Fate::Delivered,
            Fate::Undelivered("gone".to_owned()),
            Fate::Undelivered("cleared".to_owned()),
            Fate::Pending,
        ]
    );
}

/// Posts to the child and about its question are kept as they were, and each knows its kind.
pub(super) async fn every_kind_of_post_is_read_as_it_was_written(site: Arc<dyn Site>) {
    let seen = on_new(&site, |journal| {
        let task = task_with(journal, 1, owned("parent", "me"), &[Event::Started])?;
        let said = |visible: &str| Message {
            visible: visible.to_owned(),
            hidden: "<hidden>".to_owned(),
        };
        let question = "q".to_owned();
        let replies = [
            Reply::Once,
            Reply::Always,
            Reply::Reject { text: None },
            Reply::Reject {
                text: Some("no".to_owned()),
            },
            Reply::Values([("k".to_owned(), vec!["a".to_owned(), "b".to_owned()])].into()),
        ];
        let answers = replies.map(|reply| Content::Answer {
            question: question.clone(),
            reply,
        });
        let mut contents = vec![
            Content::Message(said("left")),
            Content::Question {
                question: question.clone(),
                message: said("it asks"),
            },
        ];
        contents.extend(answers);
        let posts = (1..).zip(contents).map(|(number, content)| Post {
            id: task.id.message(number),
            to: format!("session {number}").as_str().into(),
            run: 3,
            content,
        });
        let posts: Vec<Post> = posts.collect();
        for post in &posts {
            journal.post(&task, post, at(1))?;
        }
        let due = due(journal, &"me".into(), at(1), 0, 99)?;
        let due: Vec<Post> = due.into_iter().map(|due| due.post).collect();
        let kinds = journal.posts(&task.id)?.into_iter();
        let kinds: Vec<_> = kinds.map(|post| (post.kind, post.question)).collect();
        Ok((posts, due, kinds))
    });
    let (posts, due, kinds) = seen.await;
    assert_eq!(due, posts);
    let about = |post: &Post| match &post.content {
        Content::Question { question, .. } | Content::Answer { question, .. } => {
            Some(question.clone())
        }
        Content::Notice(_) | Content::Message(_) => None,
    };
    let written = posts.iter().map(|post| (post.content.kind(), about(post)));
    assert_eq!(kinds, written.collect::<Vec<_>>());
}

/// A child that waits for its own tasks waits for their ends to be told, not for what they are told.
pub(super) async fn only_a_notice_keeps_the_task_above_waiting(site: Arc<dyn Site>) {
    let counts = on_new(&site, |journal| {
        let above = task_with(journal, 1, owned("parent", "me"), &[])?;
        let mut launched = owned("child", "me");
        launched.place.above = Some(above.id.clone());
        let below = task_with(journal, 2, launched, &[completed("done")])?;
        let message = Post {
            id: below.id.message(9),
            content: Content::Message(Message {
                visible: "left".to_owned(),
                hidden: String::new(),
            }),
            ..notice(&below)
        };
        journal.post(&below, &message, at(1))?;
        let told = journal.unsettled_below(&above.id)?;
        journal.post(&below, &notice(&below), at(1))?;
        Ok([told, journal.unsettled_below(&above.id)?])
    });
    assert_eq!(counts.await, [0, 1]);
}

/// It is not overtaken while it cannot be sent; what is for others does not wait for it.
pub(super) async fn a_message_waits_for_the_one_before_it(site: Arc<dyn Site>) {
    let seen = on_new(&site, |journal| {
        let me = "me".into();
        let message = |task: &Task, number| Post {
            id: task.id.message(number),
            content: Content::Message(Message {
                visible: "left".to_owned(),
                hidden: String::new(),
            }),
            ..notice(task)
        };
        let one = task_with(journal, 1, owned("parent", "me"), &[])?;
        let other = task_with(journal, 2, owned("parent", "me"), &[])?;
        for (task, number, not_before) in [(&one, 1, 9), (&one, 2, 1), (&one, 3, 1), (&other, 1, 1)]
        {
            journal.post(task, &message(task, number), at(not_before))?;
        }
        journal.post(&one, &notice(&one), at(1))?;
        let mut seen = vec![names(&due(journal, &me, at(1), 0, 99)?)];
        seen.push(names(&due(journal, &me, at(9), 0, 99)?));
        // The host has it, though not yet in the history.
        journal.put_off(&one.id.message(1), at(20), Some(at(9)))?;
        seen.push(names(&due(journal, &me, at(9), 0, 99)?));
        journal.delivered(&one.id.message(1), at(9))?;
        journal.undelivered(&other.id.message(1), "gone", at(9))?;
        seen.push(names(&due(journal, &me, at(9), 0, 99)?));
        Ok(seen)
    });
    let told = |n, number| id(n).message(number);
    let ended = id(1).notice(0);
    let [first, then, taken, last] = <[_; 4]>::try_from(seen.await).expect("four");
    assert_eq!(first, [told(2, 1), ended.clone()]);
    assert_eq!(then, [told(1, 1), told(2, 1), ended.clone()]);
    assert_eq!(taken, [told(1, 2), told(2, 1), ended.clone()]);
    assert_eq!(last, [told(1, 2), ended]);
}

pub(super) async fn a_post_that_cannot_be_read_is_given_up_by_its_place(site: Arc<dyn Site>) {
    on_new(&site, |journal| {
        posted(journal, 1, "me", 1)?;
        posted(journal, 2, "me", 1)
    })
    .await;
    let first = id(1).notice(0);
    site.tamper(&format!(
        "UPDATE notices SET kind = 'strange', run = -5 WHERE id = '{first}'"
    ));
    let store = site.open();
    let seen = write(&store, |journal| {
        let me = "me".into();
        let found = journal.due(&me, at(1), 0, 9)?;
        for unreadable in found.iter().filter_map(|found| found.as_ref().err()) {
            journal.give_up(unreadable, at(2))?;
        }
        let left = names(&due(journal, &me, at(1), 0, 9)?);
        let posts = journal.posts(&id(1))?;
        Ok((found.len(), left, posts))
    });
    let (found, left, posts) = seen.await.expect("written");
    assert_eq!((found, left), (2, vec![id(2).notice(0)]));
    let [post] = posts.as_slice() else {
        panic!("{posts:?}");
    };
    assert_eq!(post.id, first);
    let Fate::Undelivered(why) = &post.fate else {
        panic!("{post:?}");
    };
    assert!(why.contains(first.as_str()), "{why}");
}

/// A message of this text, and nothing hidden.
fn message(visible: &str) -> Message {
    Message {
        visible: visible.to_owned(),
        hidden: String::new(),
    }
}

/// Three ends of one batch, which are about to be told in the message of the first.
fn together(journal: &mut dyn Journal) -> Stored<[Task; 3]> {
    let tasks = [1, 2, 3].map(|n| posted(journal, n, "me", 10));
    let [first, second, third] = tasks;
    let tasks = [first?, second?, third?];
    let found = due(journal, &"me".into(), at(10), 0, 1)?.remove(0);
    journal.sending(&found, &"me".into(), at(11))?;
    let names = tasks.each_ref().map(|task| task.id.notice(0));
    let [first, second, third] = names.clone();
    let told = [(first, true), (second, false), (third, true)];
    journal.tell_together(&names[0], &message("all three"), &told, at(11))?;
    Ok(tasks)
}

pub(super) async fn ends_that_are_told_together_have_one_text_and_one_fate(site: Arc<dyn Site>) {
    let seen = on_new(&site, |journal| {
        let tasks = together(journal)?;
        let found = due(journal, &"me".into(), at(99), 0, 9)?;
        let next = journal.next_due(&"me".into(), at(1))?;
        let unsent = journal.unsent_ends(&tasks[0].id.notice(0), at(99), 9)?;
        let whole = journal.told_whole(&tasks[0].id.notice(0))?;
        journal.withdraw(&tasks[1].id.notice(0), "read meanwhile", at(12))?;
        journal.delivered(&tasks[0].id.notice(0), at(13))?;
        let mut fates = Vec::new();
        for task in &tasks {
            let posts = journal.posts(&task.id)?.into_iter();
            fates.extend(posts.map(|post| (post.fate, post.told_with)));
        }
        let pending = journal.any_pending(&"parent-me".into())?;
        Ok((found, next, unsent.len(), whole, fates, pending))
    });
    let (found, next, unsent, whole, fates, pending) = seen.await;
    assert_eq!(names(&found), [id(1).notice(0)]);
    let text = Content::Notice(NoticeText::Worded(message("all three")));
    assert_eq!(found[0].post.content, text);
    assert_eq!((next, unsent), (Some(at(10)), 0));
    assert_eq!(whole, [(id(1), 0), (id(3), 0)]);
    let with = Some(id(1).notice(0));
    let told = [None, with.clone(), with].map(|with| (Fate::Delivered, with));
    assert_eq!(fates, told);
    assert!(!pending);
}

/// A worker that found it before and cannot open its host puts it off; it is in another's message.
pub(super) async fn an_end_that_is_told_with_another_is_not_put_off_by_itself(site: Arc<dyn Site>) {
    let seen = on_new(&site, |journal| {
        let tasks = together(journal)?;
        let late = posted(journal, 4, "me", 10)?;
        journal.put_off(&tasks[1].id.notice(0), at(50), None)?;
        let unsent = journal.unsent_ends(&late.id.notice(0), at(99), 9)?;
        let due = names(&due(journal, &"me".into(), at(99), 0, 9)?);
        Ok((unsent.len(), due))
    });
    let (unsent, due) = seen.await;
    assert_eq!(unsent, 0, "it would be told twice");
    assert_eq!(due, [1, 4].map(|n| id(n).notice(0)));
}

pub(super) async fn ends_that_were_not_sent_together_are_on_their_own_again(site: Arc<dyn Site>) {
    let seen = on_new(&site, |journal| {
        let tasks = together(journal)?;
        journal.put_off(&tasks[0].id.notice(0), at(50), Some(at(12)))?;
        let sent = names(&due(journal, &"me".into(), at(50), 0, 9)?);
        journal.put_off(&tasks[0].id.notice(0), at(60), None)?;
        let early = due(journal, &"me".into(), at(59), 0, 9)?.len();
        let unsent = names(&due(journal, &"me".into(), at(60), 0, 9)?);
        Ok((sent, early, unsent))
    });
    let (sent, early, unsent) = seen.await;
    assert_eq!(sent, [id(1).notice(0)], "it may have been sent");
    assert_eq!(early, 0);
    assert_eq!(unsent, [1, 2, 3].map(|n| id(n).notice(0)));
}

/// Nothing waits for others any more; who waits for a caller still does.
pub(super) async fn a_batch_that_is_over_hurries_its_notices(site: Arc<dyn Site>) {
    let seen = on_new(&site, |journal| {
        posted(journal, 1, "me", 90)?;
        let awaited = posted(journal, 2, "me", 90)?;
        journal.wait(&awaited.id, &"parent-me".into(), at(99))?;
        posted(journal, 3, "you", 90)?;
        journal.hurry_batch(&"parent-me".into(), 1, at(5))?;
        let of_another = due(journal, &"me".into(), at(5), 0, 9)?.len();
        journal.hurry_batch(&"parent-me".into(), 0, at(5))?;
        let me = names(&due(journal, &"me".into(), at(5), 0, 9)?);
        let you = names(&due(journal, &"you".into(), at(5), 0, 9)?);
        Ok((of_another, me, you))
    });
    let (of_another, me, you) = seen.await;
    assert_eq!(of_another, 0);
    assert_eq!(me, [id(1).notice(0)]);
    assert_eq!(you, []);
}

/// Whoever has read a result is told of the end without it, unless it is being sent.
pub(super) async fn a_result_that_was_read_is_not_in_its_notice(site: Arc<dyn Site>) {
    let seen = on_new(&site, |journal| {
        let tasks = [1, 2, 3].map(|n| posted(journal, n, "me", 10));
        let [first, second, third] = tasks;
        let (first, second, third) = (first?, second?, third?);
        let whole = |journal: &mut dyn Journal| {
            let ends = journal.unsent_ends(&third.id.notice(0), at(10), 9)?;
            Ok(ends.into_iter().map(|end| end.end).collect::<Vec<_>>())
        };
        let before = whole(journal)?;
        for task in [&first, &second] {
            journal.result_was_read(&task.id.notice(0))?;
        }
        let unsent = whole(journal)?;
        let due = due(journal, &"me".into(), at(10), 0, 1)?.remove(0);
        Ok((before, unsent, due.post.content))
    });
    let (before, unsent, due) = seen.await;
    let without: Vec<_> = before
        .iter()
        .map(|end| end.clone().without_result())
        .collect();
    assert_ne!(before, without);
    assert_eq!(unsent, without);
    let end = without[0].clone();
    assert_eq!(due, Content::Notice(NoticeText::Unsent { batch: 0, end }));
}

pub(super) async fn only_ends_of_one_batch_are_told_together(site: Arc<dyn Site>) {
    let seen = on_new(&site, |journal| {
        let (now, me) = (at(20), "me".into());
        let first = posted(journal, 1, "me", 10)?;
        posted(journal, 2, "me", 90)?;
        posted(journal, 3, "you", 10)?;
        let awaited = posted(journal, 4, "me", 90)?;
        journal.wait(&awaited.id, &"parent-me".into(), at(99))?;
        let mut later = owned("parent-me", "me");
        later.batch = 1;
        let later = task_with(journal, 5, later, &[completed("done")])?;
        journal.post(&later, &notice(&later), at(10))?;
        let ends = journal.unsent_ends(&first.id.notice(0), now, 9)?;
        let ends: Vec<PostId> = ends.into_iter().map(|end| end.id).collect();
        let parent = "parent-me".into();
        let before = journal.told_of_batch(&parent, 0, 9)?;
        let found = due(journal, &me, now, 0, 1)?.remove(0);
        journal.sending(&found, &me, now)?;
        let after = journal.told_of_batch(&parent, 0, 9)?;
        Ok((ends, before, after))
    });
    let (ends, before, after) = seen.await;
    assert_eq!(
        ends,
        [id(2).notice(0)],
        "not of others, nor who is waited for"
    );
    let told = |messages, next| ToldOfBatch {
        messages,
        next: Some(at(next)),
    };
    assert_eq!((before, after), (told(0, 10), told(1, 90)));
}

/// A task of a session that is told when it asks, with its notice.
fn posted_outside(journal: &mut dyn Journal, n: u128, not_before: i64) -> Stored<Task> {
    let mut launched = owned("main", "me");
    launched.place.outside = Some(HostRef::ClaudeCode {
        config: "/home/me/.claude".into(),
    });
    let task = task_with(journal, n, launched, &[completed("done")])?;
    journal.post(&task, &notice(&task), at(not_before))?;
    Ok(task)
}

fn due_to(journal: &mut dyn Journal, now: i64) -> Stored<Vec<PendingPost>> {
    let found = journal.due_to(&"main".into(), at(now), 9)?;
    let found: Result<_, _> = found.into_iter().collect();
    Ok(found.expect("readable"))
}

pub(super) async fn a_session_that_asks_takes_its_notices_once(site: Arc<dyn Site>) {
    let seen = on_new(&site, |journal| {
        let me = "me".into();
        let task = posted_outside(journal, 1, 10)?;
        let no_workers = (
            due(journal, &me, at(20), 0, 9)?,
            journal.next_due(&me, at(1))?,
            journal.unfinished()?,
        );
        let too_early = due_to(journal, 9)?;
        let next = journal.next_due_to(&"main".into(), at(9))?;
        let found = due_to(journal, 10)?.remove(0);
        let takes = [
            journal.take(&found, at(11))?,
            // Another waiter found it too.
            journal.take(&found, at(11))?,
        ];
        // It is looked for from now on, until it is known to have arrived.
        let taken = due_to(journal, 11)?.remove(0);
        journal.delivered(&found.post.id, at(12))?;
        let over = due_to(journal, 99)?;
        let host = found.host.host.to_string();
        let fate = fate(journal, &task)?;
        Ok((
            no_workers,
            too_early,
            next,
            takes,
            taken.attempted,
            over,
            host,
            fate,
        ))
    });
    let (no_workers, too_early, next, takes, attempted, over, host, fate) = seen.await;
    assert_eq!(no_workers, (Vec::new(), None, Vec::new()));
    assert!(too_early.is_empty() && over.is_empty());
    assert_eq!(next, Some(at(10)));
    assert_eq!(takes, [true, false]);
    assert_eq!(attempted, Some(at(11)));
    assert_eq!(host, "claude-code:/home/me/.claude");
    assert_eq!(fate, [Fate::Delivered]);
}

pub(super) async fn a_notice_that_cannot_be_sent_waits_for_its_session(site: Arc<dyn Site>) {
    let seen = on_new(&site, |journal| {
        let me = "me".into();
        let task = posted(journal, 1, "me", 1)?;
        let parent = &task.place.parent;
        let before = due(journal, &me, at(2), 0, 9)?.len();
        journal.hold(&task.id.notice(0))?;
        let after = due(journal, &me, at(2), 0, 9)?.len();
        let asked = journal.due_to(parent, at(2), 9)?.len();
        Ok((before, after, asked))
    });
    assert_eq!(seen.await, (1, 0, 1));
}

pub(super) async fn a_notice_that_waits_in_a_host_is_left_there_until_workers_look_again(
    site: Arc<dyn Site>,
) {
    let seen = on_new(&site, |journal| {
        let me = "me".into();
        let task = posted(journal, 1, "me", 1)?;
        let parent = &task.place.parent;
        let found = due(journal, &me, at(1), 0, 9)?.remove(0);
        journal.sending(&found, &me, at(1))?;
        journal.leave(&task.id.notice(0))?;
        let left = (
            due(journal, &me, at(2), 0, 9)?.len(),
            journal.due_to(parent, at(2), 9)?.len(),
            journal.next_due(&me, at(0))?,
            journal.any_pending(parent)?,
        );
        journal.look_again()?;
        Ok((left, due(journal, &me, at(2), 0, 9)?.len()))
    });
    let (left, again) = seen.await;
    assert_eq!(left, (0, 0, None, false));
    assert_eq!(again, 1);
}

pub(super) async fn a_process_shows_one_session_at_a_time(site: Arc<dyn Site>) {
    let seen = on_new(&site, |journal| {
        let (old, new) = ("old".into(), "new".into());
        let mut seen = vec![journal.shown_by("7@1")?];
        let said = [
            journal.shows("7@1", &old, at(1))?,
            journal.shows("7@1", &old, at(2))?,
            journal.shows("7@1", &new, at(3))?,
        ];
        seen.push(journal.shown_by("7@1")?);
        seen.push(journal.shown_by("8@1")?);
        Ok((seen, said))
    });
    let (seen, said) = seen.await;
    assert_eq!(seen, [None, Some("new".into()), None]);
    assert_eq!(said, [true, false, true]);
}
