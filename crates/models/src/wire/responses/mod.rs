//! OpenAI Responses, without anything stored at the provider.

mod request;
mod stream;
#[cfg(test)]
mod tests;

pub(crate) use request::body;
pub(crate) use stream::Answering;
