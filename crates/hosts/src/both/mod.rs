//! What is the same in both generations of OpenCode.

pub(crate) mod chosen_model;
pub(crate) mod conversation;
pub(crate) mod json;
pub(crate) mod long_wait;
pub(crate) mod metadata;
pub(crate) mod pages;
pub(crate) mod response;
pub(crate) mod role;
pub(crate) mod session_model;
pub(crate) mod usage;
