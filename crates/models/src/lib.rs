//! Language models: three protocols, one way to ask.

mod answer_limits;
mod asking;
mod error;
mod http;
mod key;
mod models;
mod overview;
mod price;
mod provider_error;
mod rate_limit;
mod request;
mod retry;
mod service;
mod settings;
mod unwanted;
mod wire;

pub use asyncagents_core::{agent::Effort, secret::Secret};
pub use error::ModelError;
pub use key::KeySource;
pub use models::{Model, Models};
pub use overview::{KeyState, ProviderOverview};
pub use request::{AnswerEvent, Request};
pub use settings::{Provider, Settings};
pub use wire::Wire;
