//! What a call is answered, for programs: the words, and the tasks that they are about.

use asyncagents_core::{moment::Moment, request::TextPart, task_list::TaskList};
use asyncagents_runtime::About;
use asyncagents_views::TaskView;
use serde::Serialize;
use serde_json::{Value, json};

/// A client may show its model nothing but this, so the words are in it.
pub(super) fn structured(text: &str, about: About, now: Moment) -> Value {
    match about {
        About::Words => json!({"text": text}),
        About::Task(shown) => {
            json!({"text": text, "task": value(&TaskView::new(&shown, now))})
        }
        About::List(list) => {
            let room = TextPart::MOST.saturating_sub(text.chars().count());
            let list = as_many_as_fit(list, room, now);
            json!({"text": text, "tasks": value(&TaskView::list(&list, now))})
        }
        About::Cleared(cleared) => {
            let (cleared, stopped) = (cleared.tasks, cleared.stopped);
            json!({"text": text, "cleared": cleared, "stopped": stopped})
        }
    }
}

fn value(view: &impl Serialize) -> Value {
    serde_json::to_value(view).unwrap_or_default()
}

/// The newest tasks, as many as there is room for.
fn as_many_as_fit(mut list: TaskList, mut room: usize, now: Moment) -> TaskList {
    let fits = list.tasks.iter().take_while(|shown| {
        let length = value(&TaskView::new(shown, now)).to_string().len();
        let fits = length <= room;
        room = room.saturating_sub(length);
        fits
    });
    let (fitting, all) = (fits.count(), list.tasks.len());
    list.tasks.truncate(fitting);
    list.left_out.count += u64::try_from(all - fitting).unwrap_or(u64::MAX);
    list
}
