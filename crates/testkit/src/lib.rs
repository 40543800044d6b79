//! Made-up sessions and a clock for tests and benchmarks. A dev-dependency only.

pub mod clock;
pub mod fuzz;
pub mod generate;
pub mod opencode;
