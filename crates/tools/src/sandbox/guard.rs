//! The guard: starts the supervisor, and does its work if it is killed. What the supervisor
//! leaves then becomes the guard's.

use std::{io, process::Command};

use rustix::process::Pid;

use super::{
    descendants::Descendants,
    group::Group,
    order::{Order, Stage},
    report::{Report, write_text},
    this_program,
};

/// Runs the supervisor to its end, and ends what it may have left.
pub(super) fn guard(order: &Order) -> i32 {
    // No terminal: a command can neither ask the user nor get the keys meant for asyncagents.
    rustix::process::setsid().ok();
    let report = match run(order) {
        Ok(None) => return 0,
        Ok(Some(report)) => report,
        Err(error) => Report::Failed(error.to_string()),
    };
    write_text(io::stdout(), &report.line());
    1
}

/// `None`: the supervisor has reported.
fn run(order: &Order) -> io::Result<Option<Report>> {
    let order = Order {
        group: Group::make(&order.resources),
        ..order.clone()
    };
    let descendants = Descendants::adopt_orphans(order.group.clone())?;
    // The supervisor has the same input, so that it notices the end of asyncagents also without the guard.
    let supervisor = Command::new(this_program()?)
        .args(order.arguments(Stage::Supervise))
        .spawn()?;
    let status = descendants.wait_for(Pid::from_child(&supervisor))?;
    let ended = descendants.end_all();
    let how = match (status.exit_status(), status.terminating_signal()) {
        (Some(0), _) => return Ok(None),
        (_, Some(signal)) => format!("was ended by signal {signal}"),
        (_, None) => "could not do its work".to_owned(),
    };
    Ok(Some(match ended {
        Ok(()) => Report::Lost(how),
        Err(error) => Report::Left(error.to_string()),
    }))
}
