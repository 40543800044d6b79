//! `scripts/fuzz` runs this; the work is an ordinary function that tests call too.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| asyncagents_testkit::fuzz::read_and_fork(data));
