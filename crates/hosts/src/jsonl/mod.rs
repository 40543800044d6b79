//! Conversations that other agents keep in files with a record on each line, read from the end.

mod find_line;
mod mark;
mod name;
mod open;
mod recent;

pub(crate) use find_line::newest_line;
pub(crate) use mark::has_mark;
pub(crate) use name::is_id;
pub(crate) use recent::recent;
