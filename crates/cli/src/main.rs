//! The command `asyncagents`.

fn main() -> std::process::ExitCode {
    asyncagents::main(&[])
}
