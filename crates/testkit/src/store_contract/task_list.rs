//! Lists of tasks.

use std::sync::Arc;

use asyncagents_core::{
    event::{Event, Launched},
    id::TaskId,
    port::{Journal, Stored},
    task::{Outcome, Status},
    task_list::{LeftOut, ListRequest},
};

use super::{
    Site, on_new,
    samples::{completed, ended, id, ids, launched, task_with},
};

fn named(parent: &str, description: &str) -> Launched {
    let mut named = launched(parent);
    named.brief.description = description.to_owned();
    named
}

fn listed(journal: &mut dyn Journal, request: &ListRequest) -> Stored<(Vec<TaskId>, LeftOut)> {
    let list = journal.list(request)?;
    Ok((ids(&list.tasks), list.left_out))
}

fn left_out(count: u64) -> LeftOut {
    LeftOut {
        count,
        or_more: false,
    }
}

pub(super) async fn a_list_has_the_newest_and_all_that_are_not_finished(site: Arc<dyn Site>) {
    let [usual, newest, few_live, all, of_other, none] = on_new(&site, |journal| {
        // Two that are not finished, older than all others.
        task_with(journal, 9, named("main", "old"), &[])?;
        task_with(journal, 8, named("other", "old"), &[Event::Started])?;
        for n in 1..=4 {
            task_with(journal, n, named("main", "done"), &[completed("so")])?;
        }
        task_with(journal, 7, named("main", "gone"), &[Event::Cleared])?;
        let most = |newest, live| ListRequest {
            newest,
            live,
            ..ListRequest::all()
        };
        let of_other = ListRequest {
            of: Some("other".into()),
            ..most(1, usize::MAX)
        };
        Ok([
            listed(journal, &most(2, usize::MAX))?,
            listed(journal, &most(2, 0))?,
            listed(journal, &most(2, 1))?,
            listed(journal, &ListRequest::all())?,
            listed(journal, &of_other)?,
            listed(journal, &most(0, 0))?,
        ])
    })
    .await;
    assert_eq!(usual, ([4, 3, 8, 9].map(id).into(), left_out(2)));
    assert_eq!(newest, ([4, 3].map(id).into(), left_out(4)));
    assert_eq!(few_live, ([4, 3, 8].map(id).into(), left_out(3)));
    assert_eq!(all, ([4, 3, 2, 1, 8, 9].map(id).into(), left_out(0)));
    assert_eq!(of_other, ([8].map(id).into(), left_out(0)));
    assert_eq!(none, (Vec::new(), left_out(6)));
}

pub(super) async fn a_list_can_be_of_one_status(site: Arc<dyn Site>) {
    let resumed = Event::Resumed {
        prompt: "go on".to_owned(),
        batch: 1,
        chain: None,
        from: None,
    };
    let found = on_new(&site, move |journal| {
        let failed = ended(Outcome::Failed {
            why: "no".to_owned(),
        });
        let again = [Event::Started, completed("so"), resumed.clone()];
        let at_work = [again.to_vec(), vec![Event::Started]].concat();
        task_with(journal, 1, launched("main"), &[])?;
        task_with(journal, 2, launched("main"), &[Event::Started])?;
        task_with(journal, 3, launched("main"), &at_work)?;
        task_with(journal, 4, launched("main"), &[completed("so")])?;
        task_with(journal, 5, launched("main"), &[failed])?;
        task_with(journal, 6, launched("main"), &[ended(Outcome::Cancelled)])?;
        task_with(journal, 7, launched("other"), &[completed("so")])?;
        let each = Status::ALL.iter().map(|(_, status)| {
            let all = ListRequest {
                status: Some(*status),
                ..ListRequest::all()
            };
            let of_main = ListRequest {
                of: Some("main".into()),
                ..all.clone()
            };
            let one = ListRequest {
                newest: 1,
                ..all.clone()
            };
            let left_out = listed(journal, &one)?.1.count;
            let (all, main) = (listed(journal, &all)?.0, listed(journal, &of_main)?.0);
            Ok((*status, all, main, left_out))
        });
        each.collect::<Stored<Vec<_>>>()
    });
    // A queued task counts as running for a caller that waits for it.
    let expected = [
        (Status::Queued, vec![1], vec![1], 0),
        (Status::Running, vec![2, 1], vec![2, 1], 0),
        (Status::Resumed, vec![3], vec![3], 0),
        (Status::Completed, vec![7, 4], vec![4], 1),
        (Status::Error, vec![5], vec![5], 0),
        (Status::Cancelled, vec![6], vec![6], 0),
    ];
    let ids = |all: Vec<u128>| all.into_iter().map(id).collect::<Vec<_>>();
    let expected = expected.map(|(status, all, main, left)| (status, ids(all), ids(main), left));
    assert_eq!(found.await, expected);
}

pub(super) async fn a_list_can_be_searched_in_whatever_case(site: Arc<dyn Site>) {
    const TALL: u128 = 0xab << 120;
    let found = on_new(&site, |journal| {
        task_with(journal, 1, named("main", "Fix the PARSER"), &[])?;
        task_with(journal, 2, named("main", "Ärger im Übersetzer"), &[])?;
        task_with(journal, 3, named("main", "100% of _all_"), &[])?;
        let mut explores = named("other", "something else");
        explores.brief.agent = "explore".into();
        task_with(journal, TALL, explores, &[completed("parser")])?;
        let texts = [
            "parser", "äRGER", "ÜBER", "100%", "0% o", "_all_", "%", "Explore", "TASK_AB", "'",
            "nobody",
        ];
        let each = texts.map(|text| {
            let request = ListRequest {
                search: Some(text.to_owned()),
                ..ListRequest::all()
            };
            Ok((text, listed(journal, &request)?.0))
        });
        let of_main = ListRequest {
            of: Some("main".into()),
            status: Some(Status::Completed),
            search: Some("explore".to_owned()),
            ..ListRequest::all()
        };
        let none = listed(journal, &of_main)?.0;
        Ok((each.into_iter().collect::<Stored<Vec<_>>>()?, none))
    });
    let (found, none) = found.await;
    let expected: [(&str, &[u128]); 11] = [
        ("parser", &[1]),
        ("äRGER", &[2]),
        ("ÜBER", &[2]),
        ("100%", &[3]),
        ("0% o", &[3]),
        ("_all_", &[3]),
        ("%", &[3]),
        ("Explore", &[TALL]),
        ("TASK_AB", &[TALL]),
        ("'", &[]),
        ("nobody", &[]),
    ];
    let expected = expected.map(|(text, ids)| (text, ids.iter().map(|n| id(*n)).collect()));
    assert_eq!(found, expected);
    assert_eq!(none, []);
}

pub(super) async fn what_a_list_leaves_out_is_counted_up_to_a_thousand(site: Arc<dyn Site>) {
    let counts = on_new(&site, |journal| {
        let one = ListRequest {
            newest: 1,
            ..ListRequest::all()
        };
        for n in 1..=1_001 {
            task_with(journal, n, launched("main"), &[completed("so")])?;
        }
        let before = listed(journal, &one)?.1;
        // One that is shown, older than those that are counted or not.
        task_with(journal, 1_002, launched("main"), &[completed("so")])?;
        Ok([before, listed(journal, &one)?.1])
    });
    let most = LeftOut::MOST;
    let more = LeftOut {
        count: most,
        or_more: true,
    };
    assert_eq!(counts.await, [left_out(most), more]);
}

pub(super) async fn a_session_has_live_tasks_until_they_end_or_are_cleared(site: Arc<dyn Site>) {
    let seen = on_new(&site, |journal| {
        let main = "main".into();
        let mut seen = vec![journal.any_live(&main)?];
        task_with(journal, 1, launched("other"), &[])?;
        task_with(journal, 2, launched("main"), &[completed("so")])?;
        seen.push(journal.any_live(&main)?);
        let mut task = task_with(journal, 3, launched("main"), &[])?;
        seen.push(journal.any_live(&main)?);
        journal.append(&mut task, &[completed("so")], super::samples::at(2))?;
        seen.push(journal.any_live(&main)?);
        task_with(journal, 4, launched("main"), &[Event::Cleared])?;
        seen.push(journal.any_live(&main)?);
        Ok(seen)
    });
    assert_eq!(seen.await, [false, false, true, false, false]);
}
