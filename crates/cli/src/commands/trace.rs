//! `asyncagents trace`: what happened in a run, step by step.

use std::{collections::HashMap, time::Duration};

use asyncagents_core::{refusal::Refusal, trace::Trace};
use asyncagents_runtime::{Manager, Problem};
use asyncagents_views::{StepView, TraceEvent, TraceView};
use tokio::time;

use super::Shell;
use crate::{
    exit::{Exit, Failure},
    print, trace_tree, width,
};

/// Show what happened in a run: its steps, what they took and cost, and the sub-agents below it.
///
/// A run has a chain ID; a task's newest run is also found by the task's ID. Without one, the
/// newest runs are listed.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  asyncagents trace
  asyncagents trace 3f9c21ab
  asyncagents trace 3f9c21ab --follow
  asyncagents trace 3f9c21ab --json | jq .total.cost_usd")]
pub(super) struct TraceArgs {
    /// The run's chain ID or its task's ID, or the beginning of it.
    #[arg(value_name = "ID")]
    run: Option<String>,

    /// Print steps as they come, until the run is over; with --json, each as a line of JSON.
    #[arg(long, requires = "run")]
    follow: bool,

    /// Print one line of JSON: the whole trace, with all texts.
    #[arg(long)]
    json: bool,
}

/// What a list without runs says.
const NO_RUNS: &str = "No runs found";

/// How many runs are listed.
const NEWEST: usize = 20;

/// How often a run that is followed is looked at.
const GLANCE: Duration = Duration::from_millis(300);

pub(super) async fn run(shell: &Shell, args: &TraceArgs) -> Result<Exit, Failure> {
    let Some(manager) = shell.onlooker()? else {
        return nothing(args);
    };
    let Some(asked) = &args.run else {
        return list(shell, &manager, args.json).await;
    };
    if args.follow {
        return follow(shell, &manager, asked, args.json).await;
    }
    let trace = manager.trace(asked).await?;
    match args.json {
        true => print::json_line(&TraceView::whole(&trace))?,
        false => show(shell, &trace_tree::tree(&trace))?,
    }
    Ok(Exit::Done)
}

/// What is said where there is no database.
fn nothing(args: &TraceArgs) -> Result<Exit, Failure> {
    if let Some(asked) = args.run.clone() {
        return Err(Problem::from(Refusal::UnknownChain { asked }).into());
    }
    match args.json {
        true => print::json_line(&[(); 0])?,
        false => print::answer(NO_RUNS)?,
    }
    Ok(Exit::Done)
}

async fn list(shell: &Shell, manager: &Manager, json: bool) -> Result<Exit, Failure> {
    let traces = manager.newest_traces(NEWEST).await?;
    if json {
        let heads: Vec<_> = traces.iter().map(TraceView::head).collect();
        print::json_line(&heads)?;
        return Ok(Exit::Done);
    }
    let lines: Vec<String> = traces.iter().map(trace_tree::headline).collect();
    match lines.is_empty() {
        true => print::answer(NO_RUNS)?,
        false => show(shell, &lines.join("\n"))?,
    }
    Ok(Exit::Done)
}

/// Prints steps as they come, until the run is over. A step without a result is printed when
/// it has one.
async fn follow(
    shell: &Shell,
    manager: &Manager,
    asked: &str,
    json: bool,
) -> Result<Exit, Failure> {
    let mut told = HashMap::new();
    loop {
        let trace = manager.trace(asked).await?;
        tell(shell, &trace, 0, json, &mut told)?;
        if !trace.state.is_live() {
            match json {
                true => print::json_line(&TraceEvent::End(TraceView::head(&trace)))?,
                false => show(shell, &trace_tree::headline(&trace))?,
            }
            return Ok(Exit::Done);
        }
        time::sleep(GLANCE).await;
    }
}

/// Prints what is new in a run and those below it.
fn tell(
    shell: &Shell,
    trace: &Trace,
    depth: usize,
    json: bool,
    told: &mut HashMap<String, usize>,
) -> Result<(), Failure> {
    let chain = trace.chain.as_ref();
    let name = chain.map_or_else(|| trace.title.clone(), ToString::to_string);
    let live = trace.state.is_live();
    let indent = "│  ".repeat(depth);
    if !told.contains_key(&name) && !json && depth > 0 {
        show(shell, &format!("{indent}{}", trace.title))?;
    }
    let known = told.entry(name.clone()).or_insert(0);
    let new = trace.steps.iter().skip(*known);
    for step in new.take_while(|step| !live || !step.is_open()) {
        *known += 1;
        match json {
            true => print::json_line(&TraceEvent::Step {
                chain_id: &name,
                step: StepView::new(step),
            })?,
            false => show(shell, &format!("{indent}{}", trace_tree::step_line(step)))?,
        }
    }
    for child in &trace.children {
        tell(shell, child, depth + 1, json, told)?;
    }
    Ok(())
}

/// Prints lines, each no wider than there is room for.
fn show(shell: &Shell, lines: &str) -> Result<(), Failure> {
    let lines: Vec<String> = match width::of_answers() {
        Some(columns) => lines
            .lines()
            .map(|line| width::fitting(line, columns))
            .collect(),
        None => vec![lines.to_owned()],
    };
    print::answer_unless_raw(&lines.join("\n"), shell.config.raw)?;
    Ok(())
}
