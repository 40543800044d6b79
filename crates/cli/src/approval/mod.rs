//! Asks at the terminal whether an agent may do something.

mod ask;
mod draw_question;
mod typed;
