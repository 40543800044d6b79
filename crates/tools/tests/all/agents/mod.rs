//! Programs of another vendor that are talked to, in the sandbox and without.

mod ending;
mod limits;
mod network;
mod started;
mod talking;
mod variables;
