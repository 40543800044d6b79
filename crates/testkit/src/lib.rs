//! Made-up sessions, a clock, a scripted host, and what every store and every host promises, for
//! tests and benchmarks. A dev-dependency only.

pub mod answered_person;
pub mod claude_code;
pub mod clock;
pub mod codex;
pub mod finished_tasks;
pub mod fuzz;
pub mod generate;
pub mod host_contract;
pub mod opencode;
pub mod opencode2;
pub mod plain;
pub mod scripted_host;
pub mod store_contract;
