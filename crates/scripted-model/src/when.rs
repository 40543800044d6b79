//! When a rule fits a request.

use regex::Regex;

use crate::{
    fill::{Captured, Captures},
    request::Request,
    script_error::ScriptError,
};

/// What a request must be like. Everything said here must hold.
///
/// "The conversation" is the text of all messages with tool calls (name and arguments) and
/// tool results, without the system prompt and without reasoning.
#[derive(Debug, Clone, Default)]
pub struct When {
    pub(crate) model: Option<String>,
    pub(crate) turn: Option<usize>,
    pub(crate) system: Option<String>,
    pub(crate) contains: Vec<String>,
    pub(crate) lacks: Vec<String>,
    pub(crate) first: Option<String>,
    pub(crate) last: Option<String>,
    pub(crate) tools: Option<bool>,
    pub(crate) headers: Vec<(String, bool)>,
    pub(crate) headers_are: Option<HeadersTest>,
    pub(crate) more_in_flight_than: Option<usize>,
    pub(crate) times: Option<u32>,
    pub(crate) captures: Vec<Capture>,
    pub(crate) wrong: Option<ScriptError>,
}

/// What must hold for the headers of a request: their names, in small letters, and values.
type HeadersTest = fn(&[(String, String)]) -> bool;

/// Something to find in the conversation.
#[derive(Debug, Clone)]
pub(crate) struct Capture {
    pub(crate) name: String,
    pub(crate) pattern: Regex,
}

impl When {
    /// Every request.
    pub fn always() -> Self {
        Self::default()
    }

    /// Requests with exactly `turn` assistant messages; the first turn is 0.
    pub fn turn(turn: usize) -> Self {
        Self::always().turn_is(turn)
    }

    /// Only requests with exactly `turn` assistant messages.
    #[must_use]
    pub fn turn_is(mut self, turn: usize) -> Self {
        self.turn = Some(turn);
        self
    }

    /// Only when the conversation contains `words`. May be said more than once.
    #[must_use]
    pub fn contains(mut self, words: impl Into<String>) -> Self {
        self.contains.push(words.into());
        self
    }

    /// Only when the conversation does not contain `words`. May be said more than once.
    #[must_use]
    pub fn lacks(mut self, words: impl Into<String>) -> Self {
        self.lacks.push(words.into());
        self
    }

    /// Only when the first user message contains `words`.
    #[must_use]
    pub fn first(mut self, words: impl Into<String>) -> Self {
        self.first = Some(words.into());
        self
    }

    /// Only when what came after the last assistant message contains `words`.
    #[must_use]
    pub fn last(mut self, words: impl Into<String>) -> Self {
        self.last = Some(words.into());
        self
    }

    /// Only when the system prompt contains `words`.
    #[must_use]
    pub fn system(mut self, words: impl Into<String>) -> Self {
        self.system = Some(words.into());
        self
    }

    /// Only when the model's name contains `name`.
    #[must_use]
    pub fn model(mut self, name: impl Into<String>) -> Self {
        self.model = Some(name.into());
        self
    }

    /// Only when the request offers tools, or only when it offers none.
    #[must_use]
    pub fn tools(mut self, offered: bool) -> Self {
        self.tools = Some(offered);
        self
    }

    /// Only when the request comes with such an HTTP header, or only when it comes without.
    /// May be said more than once.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, present: bool) -> Self {
        self.headers.push((name.into(), present));
        self
    }

    /// Only when this holds for the request's HTTP headers, whose names are in small letters.
    #[must_use]
    pub fn headers_are(mut self, so: HeadersTest) -> Self {
        self.headers_are = Some(so);
        self
    }

    /// At most so many times.
    #[must_use]
    pub fn times(mut self, times: u32) -> Self {
        self.times = Some(times);
        self
    }

    /// Only while more than `most` requests are being answered, this one included.
    #[must_use]
    pub fn more_in_flight_than(mut self, most: usize) -> Self {
        self.more_in_flight_than = Some(most);
        self
    }

    /// Only when `pattern` is found in the conversation. The last match (its first group, if it
    /// has one) stands for `{{name}}` in the reply. A pattern that is no regular expression
    /// keeps the server from starting.
    #[must_use]
    pub fn capture(mut self, name: impl Into<String>, pattern: &str) -> Self {
        let name = name.into();
        match Regex::new(pattern) {
            Ok(pattern) => self.captures.push(Capture { name, pattern }),
            Err(source) => self.wrong = Some(ScriptError::Capture { name, source }),
        }
        self
    }

    /// What it captured, if the request fits. The cheap questions come first.
    pub(crate) fn fits(&self, request: &Request) -> Option<Captures> {
        let is_in =
            |text: &str, words: &Option<String>| words.as_ref().is_none_or(|w| text.contains(w));
        let fits = self.turn.is_none_or(|turn| turn == request.turn)
            && self.tools.is_none_or(|tools| tools == request.has_tools())
            && (self.headers.iter()).all(|(name, present)| request.has_header(name) == *present)
            && self.headers_are.is_none_or(|so| so(request.headers()))
            && (self.more_in_flight_than).is_none_or(|most| request.in_flight > most)
            && is_in(&request.model, &self.model)
            && is_in(request.first(), &self.first)
            && is_in(request.last(), &self.last)
            && is_in(request.system(), &self.system)
            && self.contains.iter().all(|w| request.text().contains(w))
            && !self.lacks.iter().any(|w| request.text().contains(w));
        if !fits {
            return None;
        }
        self.captures
            .iter()
            .map(|capture| capture.search(request.text()))
            .collect()
    }
}

impl Capture {
    fn search(&self, text: &str) -> Option<Captured> {
        let found = self.pattern.captures_iter(text).last()?;
        let value = found.get(1).or_else(|| found.get(0))?;
        Some(Captured {
            name: self.name.clone(),
            value: value.as_str().to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderMap, HeaderValue};
    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use crate::protocol::Wire;

    /// One turn is over; two tools have answered.
    fn request() -> Request {
        let body = json!({
            "model": "big-model-5",
            "max_tokens": 10,
            "system": [{"type": "text", "text": "You are a careful engineer."}],
            "tools": [{"name": "bash", "input_schema": {}}],
            "messages": [
                {"role": "user", "content": "Fix the parser."},
                {"role": "assistant", "content": [
                    {"type": "thinking", "thinking": "hidden thought", "signature": "s"},
                    {"type": "text", "text": "Looking."},
                    {"type": "tool_use", "id": "1", "name": "bash", "input": {"command": "ls src"}},
                    {"type": "tool_use", "id": "2", "name": "spawn", "input": {}},
                ]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "1", "content": "lexer.rs task-1"},
                    {"type": "tool_result", "tool_use_id": "2", "content": [
                        {"type": "text", "text": "started task-27"},
                    ]},
                ]},
            ],
        });
        let mut headers = HeaderMap::new();
        headers.insert("x-session-id", HeaderValue::from_static("one"));
        let request = Request::read(Wire::Anthropic, &body.to_string()).expect("a request");
        request.with_headers(&headers).with_in_flight(3)
    }

    #[rstest]
    #[case::always(When::always(), true)]
    #[case::turn(When::turn(1), true)]
    #[case::another_turn(When::turn(0), false)]
    #[case::model(When::always().model("model-5"), true)]
    #[case::another_model(When::always().model("small"), false)]
    #[case::system(When::always().system("careful"), true)]
    #[case::another_system(When::always().system("Fix"), false)]
    #[case::message(When::always().contains("parser"), true)]
    #[case::arguments(When::always().contains("ls src"), true)]
    #[case::call(When::always().contains("spawn"), true)]
    #[case::result(When::always().contains("lexer.rs").contains("started"), true)]
    #[case::one_of_two(When::always().contains("lexer.rs").contains("nowhere"), false)]
    #[case::system_is_no_message(When::always().contains("careful"), false)]
    #[case::reasoning_is_no_message(When::always().contains("hidden"), false)]
    #[case::lacks(When::always().lacks("error").lacks("careful"), true)]
    #[case::does_not_lack(When::always().lacks("error").lacks("lexer"), false)]
    #[case::first(When::always().first("Fix"), true)]
    #[case::not_first(When::always().first("started"), false)]
    #[case::last(When::always().last("lexer").turn_is(1), true)]
    #[case::not_last(When::always().last("Looking"), false)]
    #[case::tools(When::always().tools(true), true)]
    #[case::no_tools(When::always().tools(false), false)]
    #[case::header(When::always().header("X-Session-Id", true), true)]
    #[case::no_header(When::always().header("X-Parent-Session-Id", true), false)]
    #[case::without_header(When::always().header("x-parent-session-id", false), true)]
    #[case::not_without_header(When::always().header("x-session-id", false), false)]
    #[case::headers_are(When::always().headers_are(|all| all == [("x-session-id".to_owned(), "one".to_owned())]), true)]
    #[case::headers_are_not(When::always().headers_are(<[_]>::is_empty), false)]
    #[case::crowded(When::always().more_in_flight_than(2), true)]
    #[case::not_crowded(When::always().more_in_flight_than(3), false)]
    #[case::captured(When::always().capture("id", "task-[0-9]+"), true)]
    #[case::nothing_captured(When::always().capture("id", "job-[0-9]+"), false)]
    fn a_rule_fits_when_everything_it_says_holds(#[case] when: When, #[case] fits: bool) {
        assert_eq!(when.fits(&request()).is_some(), fits);
    }

    #[rstest]
    #[case::the_last_match("task-[0-9]+", "task-27")]
    #[case::its_first_group("task-([0-9])", "2")]
    #[case::over_several_lines("(?s)Looking.*?task-([0-9]+)", "1")]
    #[case::to_the_end("([0-9]+)$", "27")]
    fn a_capture_takes_the_last_match(#[case] pattern: &str, #[case] value: &str) {
        let captures = When::always().capture("it", pattern).fits(&request());
        let values: Vec<String> = captures
            .into_iter()
            .flatten()
            .map(|captured| captured.value)
            .collect();
        assert_eq!(values, [value]);
    }
}
