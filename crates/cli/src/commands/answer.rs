//! `asyncagents answer`: answer what a task asks.

use std::collections::BTreeMap;

use asyncagents_core::{answer::AnswerState, refusal::Refusal, request::AnswerRequest};
use asyncagents_runtime::{AnswerGiven, Problem};
use asyncagents_views::AnswerView;

use super::{CommandContext, caller};
use crate::{
    exit::{Exit, Failure},
    print,
    read_input::prompt,
};

/// Answer what a task asks and waits for.
///
/// `asyncagents output` shows what it asks. Exit code 0 if the answer was taken, 3 if it is on its
/// way, 4 if it was not taken: the question had been answered meanwhile, or the host refused it.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  asyncagents answer 3f9c21ab once --question 3e4f50
  asyncagents answer 3f9c21ab reject \"Use the mock instead\"
  asyncagents answer 3f9c21ab \"the blue one\"
  asyncagents answer 3f9c21ab --value colour=blue --value size=3")]
pub(super) struct AnswerArgs {
    /// ID of the task, or a unique beginning of it.
    #[arg(value_name = "ID")]
    task: String,

    /// `once`, `always` or `reject` for a permission; the answer itself for a question, or `-` to
    /// read it from standard input.
    #[arg(value_name = "ANSWER", required_unless_present = "values")]
    answer: Option<String>,

    /// With `reject`: what the agent is told instead.
    #[arg(value_name = "TEXT")]
    text: Option<String>,

    /// A value for a field of the question; may be given several times. Also for an answer that is
    /// one of the words `once`, `always` and `reject`.
    #[arg(long = "value", value_name = "KEY=VALUE", conflicts_with = "answer", value_parser = key_and_value)]
    values: Vec<(String, String)>,

    /// Which question, by its ID as `asyncagents output` shows it. Needed if several are open; to
    /// permit what was asked less than five seconds ago; and to permit anything but the first
    /// question of a task.
    #[arg(long, value_name = "QUESTION")]
    question: Option<String>,

    /// Print one line of JSON.
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(context: &CommandContext, args: &AnswerArgs) -> Result<Exit, Failure> {
    let request = request(args)?;
    let caller = caller::of_answer(&request.given)?;
    let manager = context.manager()?;
    context.ensure_worker(&manager).await;
    let given = manager.answer(&caller, request).await?;
    if args.json {
        let AnswerGiven {
            shown,
            asked,
            reply,
            state,
            ..
        } = &given;
        print::json_line(&AnswerView::new(shown, asked, reply, state))?;
    } else {
        print::answer(&given.text())?;
    }
    Ok(match given.state {
        AnswerState::Taken => Exit::Done,
        AnswerState::OnItsWay => Exit::NotYet,
        AnswerState::NotTaken(_) => Exit::TaskFailed,
    })
}

fn request(args: &AnswerArgs) -> Result<AnswerRequest, Failure> {
    let (decision, text) = match args.answer.as_deref() {
        Some(word @ ("once" | "always" | "reject")) => (Some(word), args.text.clone()),
        Some(answer) => {
            if let Some(more) = &args.text {
                let refusal = Refusal::OutOfRange {
                    name: "TEXT",
                    value: format!("`{more}`"),
                    allowed: "a text behind `reject`; put an answer of several words in quotes",
                };
                return Err(Problem::from(refusal).into());
            }
            (None, Some(prompt(answer)?))
        }
        None => (None, None),
    };
    let mut values = BTreeMap::<String, Vec<String>>::new();
    for (key, value) in args.values.iter().cloned() {
        values.entry(key).or_default().push(value);
    }
    let request = AnswerRequest::new(&args.task, decision, text, values);
    let request = request.map_err(Problem::from)?;
    Ok(AnswerRequest {
        question: args.question.clone(),
        ..request
    })
}

fn key_and_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => {
            Ok((key.trim().to_owned(), value.to_owned()))
        }
        _ => Err("expected KEY=VALUE".to_owned()),
    }
}
