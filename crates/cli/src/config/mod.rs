//! Everything a user can set, where each value comes from, and what it may be.
//!
//! Later sources win: defaults, the user's file, the project's file, the environment, flags.

mod load;
mod settings;

pub(crate) use load::{Loaded, load};
pub(crate) use settings::{Config, SETTINGS, dollars, duration};
