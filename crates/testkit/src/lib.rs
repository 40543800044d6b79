//! Made-up sessions for tests and benchmarks. A dev-dependency only.

pub mod fuzz;
pub mod generate;
pub mod opencode;
