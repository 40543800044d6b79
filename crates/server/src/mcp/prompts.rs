//! Skills as prompts, for clients whose users choose one by its name.

use rmcp::model::{
    GetPromptRequestParams, GetPromptResult, Prompt, PromptArgument, PromptMessage, Role,
};
use serde_json::Value;

/// The one argument of every prompt: what the user types after its name.
const ARGUMENTS: &str = "arguments";

/// A skill that the user can choose.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct UserSkill {
    pub name: String,
    pub title: Option<String>,
    pub description: String,
    /// What to type behind its name.
    pub hint: Option<String>,
}

pub(super) fn prompts(skills: Vec<UserSkill>) -> Vec<Prompt> {
    let prompts = skills.into_iter().map(|skill| {
        let hint = skill.hint.unwrap_or_else(|| "What it is for".to_owned());
        let argument = PromptArgument::new(ARGUMENTS).with_description(hint);
        let argument = argument.with_required(false);
        let prompt = Prompt::new(skill.name, Some(skill.description), Some(vec![argument]));
        match skill.title {
            Some(title) => prompt.with_title(title),
            None => prompt,
        }
    });
    prompts.collect()
}

/// What is typed after the name of a skill. A client that names arguments of its own is understood too.
pub(super) fn typed(request: &GetPromptRequestParams) -> String {
    let arguments = request.arguments.iter().flatten();
    let values = arguments.map(|(_, value)| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    });
    values.collect::<Vec<_>>().join(" ")
}

pub(super) fn message(text: String) -> GetPromptResult {
    GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)])
}
