//! Made-up sessions, a clock, and what every store promises, for tests and benchmarks. A
//! dev-dependency only.

pub mod clock;
pub mod fuzz;
pub mod generate;
pub mod opencode;
pub mod store_contract;
