//! What the first request costs before the user has said anything of weight.

use std::time::Duration;

use anyhow::{Context, Result};
use asyncagents_core::tokens::o200k;
use asyncagents_scripted_model::Recorded;

use crate::comparison::{
    contender::{Contender, Contenders},
    figures::{Table, digits, thousands},
    run::{Play, Stage},
    sampler::Watch,
    script,
};

use super::in_turns;

/// The tokens of one request.
struct Tokens {
    system: usize,
    tools: usize,
    number_of_tools: usize,
    messages: usize,
    /// Of requests beside it, such as one for a title.
    beside: usize,
}

impl Tokens {
    fn total(&self) -> usize {
        self.system + self.tools + self.messages
    }
}

pub(super) fn table(stage: &Stage, contenders: &Contenders) -> Table {
    let mut table = Table::new(
        "Tokens of the first request",
        &[
            "",
            "system",
            "tools (number)",
            "messages",
            "total",
            "× ours",
            "other requests",
        ],
    );
    table.note(
        "o200k, counted by asyncagents. The prompt is \"Say hello.\"; what an agent tells its model in system or \
         developer messages counts as system.",
    );
    let measured = in_turns("tokens", &contenders.usual(), 1, |contender| {
        first_request(stage, contender)
    });
    let mut ours = None;
    for (contender, tokens) in measured {
        match tokens.as_deref() {
            Ok([tokens, ..]) => {
                let ours = *ours.get_or_insert(tokens.total());
                table.row(row(contender, tokens, ours));
            }
            Ok([]) => {}
            Err(why) => table.failed(contender.name, why),
        }
    }
    table
}

fn first_request(stage: &Stage, contender: &Contender) -> Result<Tokens> {
    let hello = Play {
        prompts: vec!["Say hello.".to_owned()],
        script: script::answer(),
        watch: Watch::Not,
        patience: Duration::from_secs(120),
    };
    let requests = stage.play(contender, hello)?.requests;
    let (with_tools, without): (Vec<&Recorded>, Vec<&Recorded>) = requests
        .iter()
        .partition(|request| !tools_of(request).is_empty());
    let first = with_tools.first().context("no request has tools")?;
    let tools = tools_of(first);
    Ok(Tokens {
        system: o200k(&first.system()),
        tools: o200k(&serde_json::to_string(&tools)?),
        number_of_tools: tools.len(),
        messages: o200k(&first.text()),
        beside: without.into_iter().map(all_of).sum(),
    })
}

fn tools_of(request: &Recorded) -> Vec<serde_json::Value> {
    let tools = request.json()["tools"].as_array().cloned();
    tools.unwrap_or_default()
}

fn all_of(request: &Recorded) -> usize {
    o200k(&request.system()) + o200k(&request.text())
}

fn row(contender: &Contender, tokens: &Tokens, ours: usize) -> Vec<String> {
    let number = |tokens: usize| thousands(tokens as u64);
    vec![
        contender.name.to_owned(),
        number(tokens.system),
        format!("{} ({})", number(tokens.tools), tokens.number_of_tools),
        number(tokens.messages),
        number(tokens.total()),
        digits(tokens.total() as f64 / ours as f64),
        number(tokens.beside),
    ]
}
