//! What every [`Store`] promises, as stories that run against any of them.
//!
//! A store passes when [`store_contract`] returns. A promise that is broken is named in the panic,
//! together with all others that are.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking; a transaction that must not end well panics"
)]

mod chains;
mod damage;
mod leases;
mod outbox;
mod prune;
mod queue;
mod runs_twice;
mod samples;
mod sessions;
mod task_list;
mod tasks;
mod transactions;
mod waits;

use std::{pin::Pin, sync::Arc};

pub use runs_twice::RunsTwice;

use asyncagents_core::port::{Journal, Store, Stored, query, transact};

/// Where a store keeps one journal.
pub trait Site: Send + Sync {
    /// Another handle on the journal, as another process would have it.
    fn open(&self) -> Arc<dyn Store>;

    /// Runs SQL on the tables of the journal, behind the back of the store.
    fn tamper(&self, sql: &str);
}

type StoryFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// One promise of a store.
struct Story {
    name: &'static str,
    tell: fn(Arc<dyn Site>) -> StoryFuture,
}

macro_rules! stories {
    ($($group:ident { $($story:ident,)+ })+) => {
        &[$($(Story {
            name: concat!(stringify!($group), "::", stringify!($story)),
            tell: |site| Box::pin($group::$story(site)),
        },)+)+]
    };
}

const STORIES: &[Story] = stories! {
    transactions {
        work_that_is_refused_leaves_no_trace_and_what_shares_its_commit_stays,
        work_that_panics_is_rolled_back_and_stops_nobody_else,
        work_that_is_run_again_leaves_one_trace,
        what_is_written_is_seen_by_every_handle_at_once,
        each_decision_sees_the_one_before_whoever_made_it,
        a_reader_does_not_wait_for_a_writer,
        a_writer_does_not_wait_for_a_reader_who_sees_one_moment,
        a_reader_changes_nothing,
        the_version_changes_when_anybody_writes,
        reopening_keeps_everything,
        what_does_not_wait_for_the_disk_is_kept_in_order,
    }
    tasks {
        a_task_is_read_as_its_events_fold,
        events_are_read_as_they_were_saved_and_in_order,
        events_are_read_from_where_one_stopped,
        an_event_number_is_never_used_twice,
        positions_follow_the_order_of_commits,
        what_the_newest_run_has_to_do_and_has_answered,
        what_a_task_is_told_before_it_begins_is_in_its_prompt,
        tasks_are_listed_newest_first_without_the_cleared,
        tasks_are_found_by_session_and_by_the_beginning_of_their_id,
        what_tasks_spend_is_summed_with_those_below,
        unknown_prices_are_summed_as_tokens_without_a_price,
        a_batch_lasts_while_one_of_its_tasks_is_live,
    }
    task_list {
        a_list_has_the_newest_and_all_that_are_not_finished,
        a_list_can_be_of_one_status,
        a_list_can_be_searched_in_whatever_case,
        what_a_list_leaves_out_is_counted_up_to_a_thousand,
        a_session_has_live_tasks_until_they_end_or_are_cleared,
    }
    queue {
        first_come_first_served_page_by_page,
        only_owned_tasks_that_are_not_stopping_are_in_the_queue,
        slots_are_counted_by_depth_host_model_and_parent,
        a_task_takes_a_slot_of_the_model_that_took_over,
    }
    leases {
        a_lease_lasts_by_the_time_since_boot,
        a_lease_without_a_boot_lasts_by_the_time_of_day,
        a_lease_that_was_taken_away_is_not_renewed,
        tasks_whose_owner_has_no_lease_are_orphans,
        an_owner_finds_what_it_has_to_do,
        unfinished_work_is_counted_by_host,
    }
    outbox {
        notices_are_due_in_order_page_by_page,
        a_notice_is_posted_once,
        a_notice_is_marked_by_one_worker_only,
        a_notice_that_is_put_off_comes_again,
        notices_that_may_have_been_sent_settle_first,
        a_parent_that_is_ready_hurries_its_notices,
        a_notice_has_one_fate,
        every_kind_of_post_is_read_as_it_was_written,
        only_a_notice_keeps_the_task_above_waiting,
        a_message_waits_for_the_one_before_it,
        a_post_that_cannot_be_read_is_given_up_by_its_place,
        ends_that_are_told_together_have_one_text_and_one_fate,
        ends_that_were_not_sent_together_are_on_their_own_again,
        only_ends_of_one_batch_are_told_together,
        a_session_that_asks_takes_its_notices_once,
        a_notice_that_cannot_be_sent_waits_for_its_session,
        a_notice_that_waits_in_a_host_is_left_there_until_workers_look_again,
        a_process_shows_one_session_at_a_time,
        an_end_that_is_told_with_another_is_not_put_off_by_itself,
        a_batch_that_is_over_hurries_its_notices,
        a_result_that_was_read_is_not_in_its_notice,
    }
    waits {
        the_longest_wait_counts_until_it_is_over,
    }
    sessions {
        a_session_is_read_as_it_was_begun,
        every_kind_of_entry_is_read_as_it_was_written,
        an_entry_with_a_known_name_is_not_added_again,
        the_newest_sessions_of_a_person_are_found,
        a_deleted_session_still_serves_those_that_begin_with_it,
        one_driver_at_a_time_writes,
        a_run_is_open_until_its_end_is_filed,
        a_run_is_summed_up_however_long_it_is,
    }
    chains {
        a_chain_begins_with_a_run_of_a_task,
        a_chain_begins_with_the_prompt_of_a_person,
        chains_are_found_by_the_beginning_of_their_name_and_by_age,
    }
    prune {
        a_tree_goes_whole_and_leaves_nothing,
        what_somebody_needs_is_not_deleted,
        old_trees_are_found_page_by_page,
        a_session_that_another_begins_with_goes_with_that,
        numbers_of_deleted_events_are_not_used_again,
        a_persons_session_goes_when_nobody_needs_it,
        room_is_given_back_and_what_stays_is_as_it_was,
    }
    damage {
        an_unknown_word_is_damage_and_names_its_row,
        a_broken_record_is_damage_and_names_its_row,
    }
};

/// Runs every story on a site of its own.
///
/// # Panics
/// When a promise is broken, with the names of all that are.
pub async fn store_contract<S: Site + 'static>(new_site: impl Fn() -> S) {
    let mut broken = Vec::new();
    for Story { name, tell } in STORIES {
        let ended = tokio::spawn(tell(Arc::new(new_site()))).await;
        broken.extend(ended.err().map(|_| *name));
    }
    assert!(
        broken.is_empty(),
        "{} of {} promises are broken:\n  {}",
        broken.len(),
        STORIES.len(),
        broken.join("\n  ")
    );
}

/// Decides and saves in one transaction.
async fn write<T: Send + 'static>(
    store: &Arc<dyn Store>,
    work: impl Fn(&mut dyn Journal) -> Stored<T> + Send + 'static,
) -> Stored<T> {
    transact(&**store, work).await
}

/// Looks something up.
async fn read<T: Send + 'static>(
    store: &Arc<dyn Store>,
    work: impl Fn(&mut dyn Journal) -> Stored<T> + Send + 'static,
) -> Stored<T> {
    query(&**store, work).await
}

/// Writes in a new journal and returns what came of it.
async fn on_new<T: Send + 'static>(
    site: &Arc<dyn Site>,
    work: impl Fn(&mut dyn Journal) -> Stored<T> + Send + 'static,
) -> T {
    write(&site.open(), work).await.expect("written")
}
