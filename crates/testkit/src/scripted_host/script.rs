//! What the children do.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use asyncagents_core::{
    agent::Effort,
    budget::Cost,
    id::{AgentName, ModelName},
    model_choice::HostModel,
    question::{Field, Question, QuestionKind},
    read::{Format, ReadError},
};
use serde::Deserialize;
use thiserror::Error;

/// What the children do, and what their parents have said before.
#[derive(Debug, Clone, Default)]
pub struct Script {
    /// The agents there are.
    pub agents: Vec<AgentName>,
    /// The models there are; without any, the host cannot say.
    pub models: Vec<HostModel>,
    /// The models that agents have of their own.
    pub models_of_agents: BTreeMap<AgentName, ModelName>,
    /// What the children do; the first that fits a prompt counts.
    pub children: Vec<Child>,
    /// What every session that is no child has said so far, as OpenCode saves it.
    pub conversation: Option<String>,
    /// What a child says that has reached a limit, if it says anything.
    pub last_turn: Option<LastTurn>,
}

/// What a child says in its last turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastTurn {
    /// How long it thinks about it.
    pub after: Duration,
    /// What it says.
    pub text: String,
    /// Tokens, in and out.
    pub tokens: u64,
    /// What it costs.
    pub cost: Cost,
}

/// What a child does on a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Child {
    /// It is for prompts that contain this; without, for all.
    pub when: Option<String>,
    /// What it does, in order.
    pub steps: Vec<Step>,
}

/// One thing a child does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Nothing, for a while.
    Wait(Duration),
    /// It calls a tool.
    Tool {
        /// Which.
        name: String,
        /// With what.
        input: String,
    },
    /// The model answers.
    Turn {
        /// Tokens, in and out.
        tokens: u64,
        /// What it costs.
        cost: Cost,
    },
    /// It asks its user something and waits.
    Ask(String),
    /// It has been answered.
    Answered,
    /// It asks its user something, and does nothing until it is answered. In what it says later,
    /// `{answer}` stands for the answer.
    AskAndWait(Question),
    /// It ends with an answer. `{prompt}` stands for the prompt, `{inherited}` for how
    /// many characters of context it has and `{told}` for what it was told meanwhile, of each
    /// message the last line.
    Answer(String),
    /// It ends with an error.
    Fail(String),
    /// It ends because its model is out of quota, or cannot be reached.
    Unavailable(String),
    /// Its model is out of quota, and it goes on trying.
    Retry(String),
    /// It never ends.
    Hang,
}

/// What is wrong with a script.
#[derive(Debug, Error)]
pub enum ScriptError {
    /// The file cannot be read.
    #[error("{path}: {source}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// It is not what a script looks like.
    #[error("{path}: {why}")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        why: String,
    },
    /// The conversation in it cannot be read.
    #[error("{path}: {source}")]
    Conversation {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: ReadError,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptFile {
    #[serde(default = "usual_agents")]
    agents: Vec<String>,
    #[serde(default)]
    model: Vec<ModelEntry>,
    conversation: Option<PathBuf>,
    last_turn: Option<String>,
    #[serde(default)]
    child: Vec<ChildEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ModelEntry {
    name: String,
    #[serde(default)]
    efforts: Vec<String>,
}

impl ModelEntry {
    fn read(self) -> Result<HostModel, String> {
        let effort =
            |word: String| Effort::of_word(&word).ok_or_else(|| format!("`{word}` is no effort"));
        let efforts: Result<Vec<Effort>, String> = self.efforts.into_iter().map(effort).collect();
        Ok(HostModel {
            name: self.name.into(),
            efforts: efforts?,
            of_agent: false,
        })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ChildEntry {
    when: Option<String>,
    #[serde(default)]
    steps: Vec<StepEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StepEntry {
    after: Option<String>,
    tool: Option<String>,
    input: Option<String>,
    tokens: Option<u64>,
    cost: Option<f64>,
    /// What it asks its user; it goes on with the next step.
    ask: Option<String>,
    /// What it asks to be permitted; it does nothing until it is answered.
    permission: Option<String>,
    /// What it wants to know, one of `options` if there are any; it does nothing until it is
    /// answered.
    question: Option<String>,
    #[serde(default)]
    options: Vec<String>,
    answer: Option<String>,
    error: Option<String>,
    /// Why its model cannot be asked.
    unavailable: Option<String>,
    #[serde(default)]
    hang: bool,
}

fn usual_agents() -> Vec<String> {
    ["general", "explore"].map(str::to_owned).to_vec()
}

impl Script {
    /// A script with the usual agents, whose children all do this.
    pub fn of(steps: impl IntoIterator<Item = Step>) -> Self {
        Self {
            agents: usual_agents().into_iter().map(AgentName::from).collect(),
            models: Vec::new(),
            models_of_agents: BTreeMap::new(),
            children: vec![Child {
                when: None,
                steps: steps.into_iter().collect(),
            }],
            conversation: None,
            last_turn: None,
        }
    }

    /// This script, with what a child says that has reached a limit.
    #[must_use]
    pub fn with_last_turn(mut self, last_turn: LastTurn) -> Self {
        self.last_turn = Some(last_turn);
        self
    }

    /// This script, in a host that has these models, each with these efforts.
    #[must_use]
    pub fn with_models(mut self, models: &[(&str, &[Effort])]) -> Self {
        let model = |(name, efforts): &(&str, &[Effort])| HostModel {
            name: (*name).into(),
            efforts: efforts.to_vec(),
            of_agent: false,
        };
        self.models = models.iter().map(model).collect();
        self
    }

    /// This script, in a host whose agent has a model of its own.
    #[must_use]
    pub fn with_model_of_agent(mut self, agent: &str, model: &str) -> Self {
        self.models_of_agents.insert(agent.into(), model.into());
        self
    }

    /// This script, with something else for prompts that contain `words`.
    #[must_use]
    pub fn when(mut self, words: &str, steps: impl IntoIterator<Item = Step>) -> Self {
        let child = Child {
            when: Some(words.to_owned()),
            steps: steps.into_iter().collect(),
        };
        self.children.insert(0, child);
        self
    }

    /// Reads a script from a TOML file.
    ///
    /// # Errors
    /// When the file cannot be read or is not a script.
    pub fn load(path: &Path) -> Result<Self, ScriptError> {
        let text = fs::read_to_string(path).map_err(|error| unreadable(path, error))?;
        Self::parse(&text, path)
    }

    /// Reads a script from TOML. Files it names are meant from the folder of `path`.
    ///
    /// # Errors
    /// When it is not a script.
    pub fn parse(text: &str, path: &Path) -> Result<Self, ScriptError> {
        let malformed = |why: String| ScriptError::Malformed {
            path: path.to_owned(),
            why,
        };
        let file: ScriptFile = toml::from_str(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            let line = text.get(..at).unwrap_or_default().matches('\n').count() + 1;
            malformed(format!(
                "line {line}: {}",
                error.message().replace('\n', " ")
            ))
        })?;
        let conversation = match file.conversation {
            Some(name) => {
                let beside = path.parent().unwrap_or(Path::new("")).join(name);
                let saved =
                    fs::read_to_string(&beside).map_err(|error| unreadable(&beside, error))?;
                Format::OpenCode
                    .read(&saved)
                    .map_err(|source| ScriptError::Conversation {
                        path: beside,
                        source,
                    })?;
                Some(saved)
            }
            None => None,
        };
        let mut children = Vec::new();
        for entry in file.child {
            let mut steps = Vec::new();
            for step in entry.steps {
                steps.extend(step.read().map_err(malformed)?);
            }
            children.push(Child {
                when: entry.when,
                steps,
            });
        }
        let models = file.model.into_iter().map(ModelEntry::read);
        let models: Result<Vec<HostModel>, String> = models.collect();
        Ok(Self {
            models: models.map_err(malformed)?,
            models_of_agents: BTreeMap::new(),
            agents: file.agents.into_iter().map(AgentName::from).collect(),
            children,
            conversation,
            last_turn: file.last_turn.map(|text| LastTurn {
                after: Duration::ZERO,
                text,
                tokens: 0,
                cost: Cost(0),
            }),
        })
    }
}

fn unreadable(path: &Path, source: std::io::Error) -> ScriptError {
    ScriptError::Unreadable {
        path: path.to_owned(),
        source,
    }
}

impl StepEntry {
    /// A pause, then what happens, both if both are there.
    fn read(self) -> Result<Vec<Step>, String> {
        let mut steps = Vec::new();
        if let Some(after) = &self.after {
            let time: jiff::SignedDuration = after
                .parse()
                .map_err(|_| format!("`after = \"{after}\"` is not a duration like 300ms or 2s"))?;
            let time = Duration::try_from(time)
                .map_err(|_| format!("`after = \"{after}\"` is in the past"))?;
            steps.push(Step::Wait(time));
        }
        if let Some(name) = self.tool {
            let input = self.input.unwrap_or_default();
            steps.push(Step::Tool { name, input });
        }
        if self.tokens.is_some() || self.cost.is_some() {
            let dollars = self.cost.unwrap_or(0.0);
            if !(0.0..=1e9).contains(&dollars) {
                return Err(format!("`cost = {dollars}` is not an amount of dollars"));
            }
            steps.push(Step::Turn {
                tokens: self.tokens.unwrap_or(0),
                cost: Cost((dollars * 1e6).round() as u64),
            });
        }
        // The answer comes with whatever it does next.
        steps.extend(self.ask.map(Step::Ask));
        let permission = self.permission.map(Question::permission);
        let question = self.question.map(|text| Question {
            text: text.clone(),
            kind: QuestionKind::Form(vec![Field {
                key: "choice".to_owned(),
                text,
                options: self.options,
                custom: false,
                multiple: false,
            }]),
        });
        let asks = permission.into_iter().chain(question);
        steps.extend(asks.map(Step::AskAndWait));
        if let Some(answer) = self.answer {
            steps.push(Step::Answer(answer));
        }
        if let Some(error) = self.error {
            steps.push(Step::Fail(error));
        }
        if let Some(why) = self.unavailable {
            steps.push(Step::Unavailable(why));
        }
        if self.hang {
            steps.push(Step::Hang);
        }
        Ok(steps)
    }
}
