//! The ways out of the sandbox that were tried, as tables: a row is a trick, and one line. Each is
//! also tried without the sandbox, to show that it is a way out on this machine.

mod reaching;
mod reading;
mod rights;
mod signalling;
mod spelling;
mod staying;
mod stories;
mod system_calls;
mod tricks;
mod writing;
