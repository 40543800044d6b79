//! OpenAI Chat Completions, as OpenAI and its many imitators speak it.

mod request;
mod stream;
#[cfg(test)]
mod tests;

pub(crate) use request::body;
pub(crate) use stream::Answering;
