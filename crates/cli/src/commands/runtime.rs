//! The runtimes that verbs run in.

use std::future::Future;

use tokio::runtime::{Builder, Runtime};

use crate::exit::{Exit, Failure};

/// One thread is enough to ask and answer.
pub(super) fn in_runtime(
    verb: impl Future<Output = Result<Exit, Failure>>,
) -> Result<Exit, Failure> {
    built(&mut Builder::new_current_thread())?.block_on(verb)
}

/// Runs a verb that works on tasks. A question that is not answered does not keep the process.
pub(super) fn in_two_threads(
    verb: impl Future<Output = Result<Exit, Failure>>,
) -> Result<Exit, Failure> {
    let runtime = two_threads()?;
    let done = runtime.block_on(verb);
    runtime.shutdown_background();
    done
}

/// Two threads are enough for a worker.
pub(super) fn two_threads() -> Result<Runtime, Failure> {
    built(Builder::new_multi_thread().worker_threads(2))
}

fn built(builder: &mut Builder) -> Result<Runtime, Failure> {
    let runtime = builder.enable_all().build();
    runtime.map_err(|error| Failure::Machine(error.into()))
}
