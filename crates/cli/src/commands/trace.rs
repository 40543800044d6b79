//! `asyncagents trace`: what happened in a run, step by step.

use asyncagents_core::refusal::Refusal;
use asyncagents_runtime::{Manager, NewSteps, Problem};
use asyncagents_views::{StepView, TraceEvent, TraceView};

use super::CommandContext;
use crate::{
    exit::{Exit, Failure},
    print, trace_tree, width,
};

/// Show what happened in a run: its steps, what they took and cost, and the sub-agents below it.
///
/// A run has a chain ID; a task's newest run is also found by the task's ID. Without an ID, list
/// the newest runs.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  asyncagents trace
  asyncagents trace 3f9c21ab
  asyncagents trace 3f9c21ab --follow
  asyncagents trace 3f9c21ab --json | jq .total.cost_usd")]
pub(super) struct TraceArgs {
    /// Chain ID of the run or ID of its task, or a unique beginning.
    #[arg(value_name = "ID")]
    run: Option<String>,

    /// Print steps as they come, until the run is over; with --json, each as a line of JSON.
    #[arg(long, requires = "run")]
    follow: bool,

    /// Print one line of JSON: the whole trace, with all texts.
    #[arg(long)]
    json: bool,
}

const NO_RUNS: &str = "No runs found";

const MOST_LISTED: usize = 20;

pub(super) async fn run(context: &CommandContext, args: &TraceArgs) -> Result<Exit, Failure> {
    let Some(manager) = context.reader()? else {
        return nothing(args);
    };
    let Some(asked) = &args.run else {
        return list(context, &manager, args.json).await;
    };
    if args.follow {
        return follow(context, &manager, asked, args.json).await;
    }
    let trace = manager.trace(asked).await?;
    if args.json {
        print::json_line(&TraceView::whole(&trace))?;
    } else {
        show(context, &trace_tree::tree(&trace))?;
    }
    Ok(Exit::Done)
}

/// The answer where there is no database.
fn nothing(args: &TraceArgs) -> Result<Exit, Failure> {
    if let Some(asked) = args.run.clone() {
        return Err(Problem::from(Refusal::UnknownChain { asked }).into());
    }
    print::json_or(args.json, &[(); 0], || NO_RUNS.to_owned())?;
    Ok(Exit::Done)
}

async fn list(context: &CommandContext, manager: &Manager, json: bool) -> Result<Exit, Failure> {
    let traces = manager.newest_traces(MOST_LISTED).await?;
    if json {
        let heads: Vec<_> = traces.iter().map(TraceView::head).collect();
        print::json_line(&heads)?;
        return Ok(Exit::Done);
    }
    let lines: Vec<String> = traces.iter().map(trace_tree::headline).collect();
    if lines.is_empty() {
        print::answer(NO_RUNS)?;
    } else {
        show(context, &lines.join("\n"))?;
    }
    Ok(Exit::Done)
}

/// Prints steps as they come, until the run is over. A step without a result is printed when
/// it has one.
async fn follow(
    context: &CommandContext,
    manager: &Manager,
    asked: &str,
    json: bool,
) -> Result<Exit, Failure> {
    let mut follower = manager.follow_trace(asked).await?;
    loop {
        let (runs, trace) = follower.next().await?;
        for run in &runs {
            show_new(context, run, json)?;
        }
        if !trace.state.is_live() {
            if json {
                print::json_line(&TraceEvent::End(Box::new(TraceView::head(&trace))))?;
            } else {
                show(context, &trace_tree::headline(&trace))?;
            }
            return Ok(Exit::Done);
        }
        follower.changed().await?;
    }
}

/// Prints what is new in a run.
fn show_new(context: &CommandContext, run: &NewSteps, json: bool) -> Result<(), Failure> {
    let indent = "│  ".repeat(run.depth);
    if run.is_first && !json && run.depth > 0 {
        show(context, &format!("{indent}{}", run.title))?;
    }
    for step in &run.steps {
        if json {
            print::json_line(&TraceEvent::Step {
                chain_id: &run.name,
                step: StepView::new(step),
            })?;
        } else {
            show(context, &format!("{indent}{}", trace_tree::step_line(step)))?;
        }
    }
    Ok(())
}

/// Prints lines, each no wider than there is room for.
fn show(context: &CommandContext, lines: &str) -> Result<(), Failure> {
    let lines: Vec<String> = match width::of_answers() {
        Some(columns) => lines
            .lines()
            .map(|line| width::fitting(line, columns))
            .collect(),
        None => vec![lines.to_owned()],
    };
    print::answer_unless_raw(&lines.join("\n"), context.config.raw)?;
    Ok(())
}
