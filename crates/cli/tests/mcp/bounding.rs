//! No answer is longer than a client shows its model.

use asyncagents_scripted_model::{Reply, Script, When};
use serde_json::json;

use crate::client::Home;

const MOST: usize = 30_000;

/// Numbered lines, so that a missing one would show.
fn long_text() -> String {
    let lines: Vec<String> = (0..12_000).map(|n| format!("line {n}")).collect();
    lines.join("\n")
}

#[test]
fn a_long_result_comes_in_parts_that_fit_together() {
    let text = long_text();
    let reply = Reply::text(text.clone()).chunk(4000);
    let home = Home::new(Script::new().rule(When::always(), reply));
    let mut client = home.client();
    let task = client.launch("Write", "Write a lot").task();
    let mut whole = String::new();
    let mut offset = 0;
    loop {
        let arguments = json!({"task_id": task, "block": true, "offset": offset});
        let part = client.done("output", arguments).text;
        assert!(part.chars().count() <= MOST, "{}", part.chars().count());
        let (shown, note) = part.rsplit_once("\n[characters ").expect("a note");
        whole.push_str(shown);
        let Some((_, next)) = note.split_once("offset=") else {
            break;
        };
        offset = next
            .trim_end_matches(") goes on]")
            .parse()
            .expect("a number");
    }
    assert!(whole.ends_with(&text), "nothing is missing or repeated");
    let few = client.done("output", json!({"task_id": task, "max_chars": 100}));
    assert!(few.text.chars().count() < 250, "{}", few.text);
}

#[test]
fn notices_make_no_answer_longer() {
    let reply = Reply::text(long_text()).chunk(4000);
    let home = Home::new(Script::new().rule(When::always(), reply));
    let mut client = home.client();
    let first = client.launch("First", "First").task();
    client.done("output", json!({"task_id": first, "block": true}));
    let others = 6;
    // One may end before the next is launched, and is told of with that answer.
    let launched = (0..others).map(|n| client.launch(&format!("Other {n}"), "Other").text);
    let mut told: String = launched.collect();
    // What they say is told with answers that are long themselves.
    crate::client::until("all are told", || {
        let said = client.done("output", json!({"task_id": first})).text;
        let length = said.chars().count();
        assert!(length <= MOST, "{length}");
        told.push_str(&said);
        (0..others).all(|n| told.contains(&format!("Agent \"Other {n}\" finished")))
    });
    for n in 0..others {
        let finished = format!("Agent \"Other {n}\" finished");
        assert_eq!(told.matches(&finished).count(), 1, "{finished}");
    }
}
