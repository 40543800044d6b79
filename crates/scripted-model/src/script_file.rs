//! A script as TOML.

use std::{collections::BTreeMap, time::Duration};

use serde::Deserialize;
use serde_json::{Map, Value};
use toml::Spanned;

use crate::{
    reply::{Arguments, Call, Content, Fault, HttpError, Outcome, Reply, SetUsage},
    script::{Rule, Script},
    script_error::ScriptError,
    when::When,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptFile {
    #[serde(default)]
    rule: Vec<Spanned<RuleEntry>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleEntry {
    model: Option<String>,
    turn: Option<usize>,
    system: Option<String>,
    #[serde(default)]
    contains: Vec<String>,
    #[serde(default)]
    lacks: Vec<String>,
    first: Option<String>,
    last: Option<String>,
    tools: Option<bool>,
    times: Option<u32>,
    #[serde(default)]
    capture: BTreeMap<String, String>,

    reasoning: Option<String>,
    text: Option<String>,
    #[serde(default)]
    calls: Vec<CallEntry>,
    stop: Option<String>,
    usage: Option<SetUsage>,
    chunk: Option<usize>,
    #[serde(default)]
    delay_ms: u64,
    #[serde(default)]
    pace_ms: u64,

    status: Option<u16>,
    retry_after: Option<String>,
    code: Option<String>,
    message: Option<String>,
    fault: Option<Fault>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CallEntry {
    name: String,
    args: Option<Map<String, Value>>,
    raw: Option<String>,
    id: Option<String>,
}

impl Script {
    /// Reads a script from TOML: a list of `[[rule]]`.
    ///
    /// ```
    /// let script = asyncagents_scripted_model::Script::parse(
    ///     r#"
    /// [[rule]]
    /// turn = 0
    /// first = "fix the parser"
    /// reasoning = "A child can look while I wait."
    /// text = "Let me look."
    /// calls = [{ name = "spawn", args = { prompt = "read lexer.rs" } }]
    ///
    /// [[rule]]
    /// last = "started"
    /// capture.task = "task-[0-9]+"
    /// calls = [{ name = "wait", args = { task = "{{task}}" } }]
    ///
    /// [[rule]]
    /// times = 1
    /// status = 429
    /// retry_after = "0"
    ///
    /// [[rule]]
    /// text = "Done."
    /// pace_ms = 20
    /// "#,
    /// );
    /// assert!(script.is_ok());
    /// ```
    ///
    /// # Errors
    /// When it is not a script; the error says in which line and which field.
    pub fn parse(toml: &str) -> Result<Self, ScriptError> {
        let file: ScriptFile = toml::from_str(toml).map_err(|error| ScriptError::Malformed {
            line: line_at(toml, error.span().map_or(0, |span| span.start)),
            why: in_one_line(error.message()),
        })?;
        let mut rules = Vec::with_capacity(file.rule.len());
        for (index, entry) in file.rule.into_iter().enumerate() {
            let line = line_at(toml, entry.span().start);
            let rule = entry.into_inner().read().map_err(|why| ScriptError::Rule {
                line,
                rule: index + 1,
                why: in_one_line(&why),
            })?;
            rules.push(rule);
        }
        Ok(Self {
            rules,
            forget_bodies: false,
        })
    }
}

impl RuleEntry {
    fn read(mut self) -> Result<Rule, String> {
        let when = self.when()?;
        let outcome = self.outcome()?;
        let content = self.content()?;
        agree(&outcome, &content)?;
        if self.message.is_some() && !may_have_message(&outcome) {
            return Err("`message` goes with `status` or `fault = \"error_event\"`".to_owned());
        }
        let reply = Reply {
            outcome,
            content,
            message: self.message,
            delay: Duration::from_millis(self.delay_ms),
            pace: Duration::from_millis(self.pace_ms),
            gate: None,
        };
        Ok(Rule { when, reply })
    }

    fn when(&mut self) -> Result<When, String> {
        let mut when = When {
            model: self.model.take(),
            turn: self.turn,
            system: self.system.take(),
            contains: std::mem::take(&mut self.contains),
            lacks: std::mem::take(&mut self.lacks),
            first: self.first.take(),
            last: self.last.take(),
            tools: self.tools,
            times: self.times,
            ..When::default()
        };
        for (name, pattern) in &self.capture {
            when = when.capture(name, pattern);
        }
        match &when.wrong {
            Some(error) => Err(error.to_string()),
            None => Ok(when),
        }
    }

    fn outcome(&mut self) -> Result<Outcome, String> {
        let (retry_after, code) = (self.retry_after.take(), self.code.take());
        match (self.status, self.fault) {
            (Some(_), Some(_)) => Err("either `status` or `fault`, not both".to_owned()),
            (Some(status), None) if !(400..=599).contains(&status) => Err(format!(
                "`status = {status}` is no error; from 400 to 599 they are"
            )),
            (Some(status), None) => Ok(Outcome::Status(HttpError {
                status,
                retry_after,
                code,
            })),
            (None, _) if retry_after.is_some() => Err("`retry_after` goes with `status`".into()),
            (None, _) if code.is_some() => Err("`code` goes with `status`".into()),
            (None, Some(fault)) => Ok(Outcome::Fault(fault)),
            (None, None) => Ok(Outcome::Answer),
        }
    }

    fn content(&mut self) -> Result<Content, String> {
        if self.chunk == Some(0) {
            return Err("`chunk = 0`: a piece has at least one character".to_owned());
        }
        if let Some(usage) = self.usage.filter(|usage| usage.cached > usage.input) {
            return Err(format!(
                "`usage.cached = {}` is a part of `usage.input = {}` and cannot be more",
                usage.cached, usage.input
            ));
        }
        let calls = std::mem::take(&mut self.calls);
        Ok(Content {
            reasoning: self.reasoning.take(),
            text: self.text.take(),
            calls: calls
                .into_iter()
                .map(CallEntry::read)
                .collect::<Result<_, _>>()?,
            stop: self.stop.take(),
            usage: self.usage,
            chunk: self.chunk,
        })
    }
}

impl CallEntry {
    fn read(self) -> Result<Call, String> {
        let arguments = match (self.args, self.raw) {
            (Some(_), Some(_)) => {
                return Err(format!(
                    "`calls`: `{}` has either `args` or `raw`, not both",
                    self.name
                ));
            }
            (None, Some(raw)) => Arguments::Raw(raw),
            (args, None) => Arguments::Json(Value::Object(args.unwrap_or_default())),
        };
        Ok(Call {
            name: self.name,
            arguments,
            id: self.id,
        })
    }
}

/// Whether a reply says something exactly when it can.
fn agree(outcome: &Outcome, content: &Content) -> Result<(), String> {
    match (outcome, content.is_empty()) {
        (Outcome::Answer, true) => Err(
            "it has no reply: `text`, `calls`, `reasoning`, `status` or `fault` is missing"
                .to_owned(),
        ),
        (Outcome::Status(_), false) => {
            Err("a `status` says nothing but its `message`; leave out the reply".to_owned())
        }
        (Outcome::Fault(Fault::Empty | Fault::Drop | Fault::ErrorEvent), false) => {
            Err("with this `fault` nothing is said; leave out the reply".to_owned())
        }
        (Outcome::Answer, false) | (Outcome::Status(_), true) | (Outcome::Fault(_), _) => Ok(()),
    }
}

fn may_have_message(outcome: &Outcome) -> bool {
    matches!(
        outcome,
        Outcome::Status(_) | Outcome::Fault(Fault::ErrorEvent)
    )
}

fn line_at(text: &str, at: usize) -> usize {
    text.get(..at).unwrap_or_default().matches('\n').count() + 1
}

fn in_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::not_toml("[[rule]]\ntext = ", "line 2: ")]
    #[case::unknown_section("[[rules]]\ntext = 'hi'", "line 1: unknown field `rules`")]
    #[case::unknown_key("[[rule]]\ntext = 'hi'\nafter = 3", "line 3: unknown field `after`")]
    #[case::unknown_key_in_a_call(
        "[[rule]]\ncalls = [{ name = 'a', input = {} }]",
        "line 2: unknown field `input`"
    )]
    #[case::wrong_type("[[rule]]\nturn = 'one'", "line 2: invalid type: string \"one\"")]
    #[case::unknown_fault("[[rule]]\nfault = 'explode'", "line 2: unknown variant `explode`")]
    #[case::no_reply("\n[[rule]]\nturn = 1", "line 2: rule 1: it has no reply")]
    #[case::second_rule(
        "[[rule]]\ntext = 'hi'\n\n[[rule]]\nturn = 1",
        "line 4: rule 2: it has no reply"
    )]
    #[case::bad_regex(
        "[[rule]]\ntext = 'hi'\ncapture.id = '('",
        "line 1: rule 1: `capture.id`: regex parse error"
    )]
    #[case::no_error("[[rule]]\nstatus = 200", "line 1: rule 1: `status = 200` is no error")]
    #[case::status_and_fault("[[rule]]\nstatus = 500\nfault = 'cut'", "either `status`")]
    #[case::status_and_text("[[rule]]\nstatus = 500\ntext = 'hi'", "a `status` says nothing")]
    #[case::retry_after("[[rule]]\ntext = 'hi'\nretry_after = '1'", "`retry_after` goes with")]
    #[case::code("[[rule]]\nfault = 'cut'\ncode = 'x'", "`code` goes with `status`")]
    #[case::message("[[rule]]\ntext = 'hi'\nmessage = 'x'", "`message` goes with")]
    #[case::silent_fault("[[rule]]\nfault = 'drop'\ntext = 'hi'", "with this `fault` nothing")]
    #[case::chunk("[[rule]]\ntext = 'hi'\nchunk = 0", "`chunk = 0`")]
    #[case::usage(
        "[[rule]]\ntext = 'hi'\nusage = { input = 1, cached = 2, output = 3 }",
        "`usage.cached = 2` is a part of `usage.input = 1`"
    )]
    #[case::args_and_raw(
        "[[rule]]\ncalls = [{ name = 'bash', args = {}, raw = '{' }]",
        "`calls`: `bash` has either `args` or `raw`"
    )]
    fn a_wrong_script_is_refused_with_the_place(#[case] toml: &str, #[case] message: &str) {
        let error = Script::parse(toml).expect_err("it is wrong").to_string();
        assert!(error.contains(message), "{error}");
        assert!(error.starts_with("line "), "{error}");
        assert!(!error.contains('\n'), "{error}");
    }

    #[test]
    fn toml_and_builder_make_the_same_script() {
        let toml = r#"
            [[rule]]
            model = "big"
            turn = 2
            system = "careful"
            contains = ["a", "b"]
            lacks = ["c"]
            first = "d"
            last = "e"
            tools = true
            times = 3
            capture.id = "t-(.)"
            reasoning = "hm"
            text = "hello"
            calls = [{ name = "bash", args = { n = 1 } }, { name = "read", raw = "{" }]
            stop = "max_tokens"
            delay_ms = 5
            pace_ms = 6
            chunk = 7
            usage = { input = 10, cached = 4, output = 3 }

            [[rule]]
            status = 429
            retry_after = "2"
            code = "slow_down"
            message = "too fast"

            [[rule]]
            fault = "error_event"
            message = "overloaded"
        "#;
        let when = When::turn(2)
            .model("big")
            .system("careful")
            .contains("a")
            .contains("b")
            .lacks("c")
            .first("d")
            .last("e")
            .tools(true)
            .times(3)
            .capture("id", "t-(.)");
        let reply = Reply::call("bash", serde_json::json!({"n": 1}))
            .raw_call("read", "{")
            .and_text("hello")
            .reasoning("hm")
            .stop("max_tokens")
            .delay(Duration::from_millis(5))
            .pace(Duration::from_millis(6))
            .chunk(7)
            .usage(10, 4, 3);
        let refused = Reply::status(429)
            .retry_after("2")
            .code("slow_down")
            .message("too fast");
        let built = Script::new()
            .rule(when, reply)
            .rule(When::always(), refused)
            .rule(
                When::always(),
                Reply::fault(Fault::ErrorEvent).message("overloaded"),
            );
        let parsed = Script::parse(toml).expect("a script");
        assert_eq!(format!("{parsed:?}"), format!("{built:?}"));
    }
}
