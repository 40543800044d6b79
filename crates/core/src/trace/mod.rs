//! Traces: what happened in a run, step by step, read from the journal. Nothing is kept for
//! them beside it.

mod chain;
mod of_entries;
mod of_events;
mod of_run;
mod step;
mod totals;

pub use chain::{Chain, ChainOf, Trace, TraceState};
pub use of_entries::RunEnd;
pub use of_run::{
    RunPosition, RunReading, RunSummary, summary_of_session, summary_of_task, trace_of_session,
    trace_of_task,
};
use step::Steps;
pub use step::{Step, StepKind, ToolResult};
pub use totals::TraceTotals;
