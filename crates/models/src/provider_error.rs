//! Errors of providers, and what to do about them: compact, wait, retry or give up.

use std::time::Duration;

use asyncagents_core::shorten::{one_line, shorten};
use serde_json::Value;

use crate::retry;

/// An error as a provider reports it, in any of their dialects.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ProviderError {
    /// The HTTP status, or the one that an error inside a stream stands for.
    pub(crate) status: Option<u16>,
    /// The provider's word for the kind of error.
    pub(crate) code: String,
    /// Whole and with every secret in it: it is redacted before it is `shortened`.
    pub(crate) message: String,
    /// The wait it asks for in a field.
    pub(crate) retry_delay: Option<Duration>,
}

/// What an error means for the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The conversation does not fit into the window.
    TooLong,
    /// Too many requests: all requests to this provider wait.
    RateLimited,
    /// Retry.
    Transient,
    /// Give up: the same request fails again.
    Permanent,
}

/// Longer texts are web pages and stack traces.
const LONGEST_MESSAGE: usize = 500;

impl ProviderError {
    /// The body of a response that has this status.
    pub(crate) fn with_status(status: u16, body: &str) -> Self {
        let mut error = match serde_json::from_str::<Value>(body) {
            Ok(json) => Self::in_json(&json),
            Err(_) => Self::from_text(body),
        };
        error.status = Some(status);
        if error.message.is_empty() {
            error.message = "no reason given".to_owned();
        }
        error
    }

    /// An error inside a stream that began well.
    pub(crate) fn in_stream(json: &Value) -> Self {
        let mut error = Self::in_json(json);
        error.status = error.status.or_else(|| status_of(&error.code));
        if error.message.is_empty() {
            error.message = match error.code.as_str() {
                "" => "an error without a reason".to_owned(),
                code => code.to_owned(),
            };
        }
        error
    }

    fn in_json(json: &Value) -> Self {
        let error = error_in(json).unwrap_or(json);
        if let Some(text) = error.as_str() {
            return Self::from_text(text);
        }
        let words = ["type", "code"].map(|name| error.get(name).and_then(Value::as_str));
        let code: Vec<&str> = words
            .into_iter()
            .flatten()
            .filter(|word| *word != "error")
            .collect();
        let number = error.get("code").and_then(Value::as_u64);
        let message = ["message", "detail", "error"]
            .iter()
            .find_map(|name| error.get(name))
            .map(|message| match message {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            });
        // A router says only that a provider has failed; that one's own error is in here.
        let cause = match error.pointer("/metadata/raw") {
            Some(Value::String(text)) => Some(text.clone()),
            Some(Value::Null) | None => None,
            Some(other) => Some(other.to_string()),
        };
        let texts: Vec<String> = message.into_iter().chain(cause).collect();
        Self {
            status: number.and_then(|number| u16::try_from(number).ok()),
            code: code.join(" "),
            message: one_line(&texts.join(": ")),
            retry_delay: retry_delay(error),
        }
    }

    fn from_text(text: &str) -> Self {
        let page = text.trim_start().starts_with('<');
        Self {
            message: if page {
                "a web page".to_owned()
            } else {
                one_line(text)
            },
            ..Self::default()
        }
    }

    /// By the status, also that of an error inside a stream, and the words.
    pub(crate) fn verdict(&self) -> Verdict {
        let status = self.status.unwrap_or(500);
        let code = self.code.as_str();
        let may_be_long = !matches!(status, 401 | 403 | 404 | 429 | 529);
        if status == 413
            || (may_be_long && self.mentions_any(TOO_LONG))
            || self.mentions_any(TOO_LARGE)
        {
            return Verdict::TooLong;
        }
        match status {
            _ if code.contains("insufficient_quota") => Verdict::Permanent,
            429 | 529 => Verdict::RateLimited,
            408 | 409 | 500.. => Verdict::Transient,
            _ => Verdict::Permanent,
        }
    }

    fn mentions_any(&self, rows: &[&[&str]]) -> bool {
        let text = format!("{} {}", self.code, self.message).to_lowercase();
        let has_all = |words: &[&str]| words.iter().all(|word| text.contains(word));
        rows.iter().any(|words| has_all(words))
    }

    /// The wait it asks for, in a field or in words.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        self.retry_delay.or_else(|| retry::in_words(&self.message))
    }

    /// Status and message.
    pub(crate) fn text(&self) -> String {
        match self.status {
            Some(status) => format!("{status}, {}", self.message),
            None => self.message.clone(),
        }
    }
}

/// The words of providers for a conversation that is too long: all of a row.
const TOO_LONG: &[&[&str]] = &[
    // Anthropic.
    &["prompt is too long"],
    &["input length and", "exceed"],
    &["request_too_large"],
    // OpenAI and who imitates it; vLLM.
    &["context_length_exceeded"],
    &["maximum context length"],
    &["context window"],
    &["maximum model length"],
    // llama.cpp, LM Studio and Ollama.
    &["exceed_context_size"],
    &["exceeds the available context"],
    &["context length", "exceed"],
    &["context size", "exceed"],
    &["context length", "greater"],
    &["context overflow"],
    // Routers and the rest.
    &["input is too long"],
    &["maximum prompt length"],
    &["input token count", "exceeds"],
    &["reduce the length of the messages"],
];

/// OpenAI's words for a request that is larger than the limit of a minute: no wait would help.
const TOO_LARGE: &[&[&str]] = &[&["request too large", "must be reduced"]];

/// The error on a page. Gemini puts it into a list.
pub(crate) fn error_in(page: &Value) -> Option<&Value> {
    let page = page.get(0).unwrap_or(page);
    page.get("error").filter(|error| !error.is_null())
}

/// Gemini asks for a wait with `{"retryDelay": "37s"}` among the details.
fn retry_delay(error: &Value) -> Option<Duration> {
    let details = error.get("details")?.as_array()?;
    let delay = details.iter().find_map(|detail| detail.get("retryDelay"))?;
    retry::in_units(delay.as_str()?)
}

/// Which status an error inside a stream stands for.
fn status_of(code: &str) -> Option<u16> {
    let word = |word: &str| code.split(' ').any(|part| part == word);
    let statuses = [
        ("overloaded_error", 529),
        ("rate_limit_error", 429),
        ("rate_limit_exceeded", 429),
        ("insufficient_quota", 429),
        ("request_too_large", 413),
        ("not_found_error", 404),
        ("permission_error", 403),
        ("billing_error", 402),
        ("authentication_error", 401),
        ("invalid_api_key", 401),
        ("invalid_request_error", 400),
        ("invalid_prompt", 400),
        ("timeout_error", 504),
        ("api_error", 500),
        ("server_error", 500),
    ];
    statuses
        .iter()
        .find(|(name, _)| word(name))
        .map(|(_, status)| *status)
}

/// A text as it is shown, after it was redacted.
pub(crate) fn shortened(text: String) -> String {
    shorten(&text, LONGEST_MESSAGE, "…")
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case::anthropic(400, r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 201537 tokens > 200000 maximum"}}"#)]
    #[case::anthropic_output(400, r#"{"type":"error","error":{"type":"invalid_request_error","message":"input length and `max_tokens` exceed context limit: 190000 + 32000 > 200000"}}"#)]
    #[case::anthropic_bytes(413, r#"{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}"#)]
    #[case::openai(400, r#"{"error":{"message":"Your input exceeds the context window of this model.","type":"invalid_request_error","code":"context_length_exceeded"}}"#)]
    #[case::openai_old(400, r#"{"error":{"message":"This model's maximum context length is 8192 tokens.","type":"invalid_request_error"}}"#)]
    #[case::vllm(400, r#"{"object":"error","message":"This model's maximum context length is 4096 tokens. However, you requested 5000 tokens","type":"BadRequestError","code":400}"#)]
    #[case::llama_cpp(400, r#"{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}"#)]
    #[case::ollama(500, r#"{"error":"input length exceeds the context length"}"#)]
    #[case::lm_studio(400, r#"{"error":"Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not greater"}"#)]
    #[case::more_than_a_minute_may_have(429, r#"{"error":{"message":"Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 40000. The input or output tokens must be reduced in order to run successfully.","type":"tokens","code":"rate_limit_exceeded"}}"#)]
    #[case::openrouter(400, r#"{"error":{"code":400,"message":"Provider returned error","metadata":{"raw":"{\"error\":{\"message\":\"prompt is too long\"}}","provider_name":"Anthropic"}}}"#)]
    #[case::gemini(400, r#"[{"error":{"code":400,"message":"The input token count (1100000) exceeds the maximum number of tokens allowed","status":"INVALID_ARGUMENT"}}]"#)]
    #[case::proxy(413, "<html>413</html>")]
    fn too_long(#[case] status: u16, #[case] body: &str) {
        let error = ProviderError::with_status(status, body);
        assert_eq!(error.verdict(), Verdict::TooLong, "{error:?}");
    }

    #[rstest]
    #[case(
        429,
        r#"{"error":{"message":"Rate limit reached","code":"rate_limit_exceeded"}}"#,
        Verdict::RateLimited
    )]
    #[case(
        429,
        r#"{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}"#,
        Verdict::Permanent
    )]
    #[case(
        529,
        r#"{"error":{"type":"overloaded_error","message":"Overloaded"}}"#,
        Verdict::RateLimited
    )]
    #[case(408, "", Verdict::Transient)]
    #[case(409, "", Verdict::Transient)]
    #[case(500, "oops", Verdict::Transient)]
    #[case(503, "<html>", Verdict::Transient)]
    #[case(400, r#"{"error":{"message":"bad"}}"#, Verdict::Permanent)]
    #[case(401, "", Verdict::Permanent)]
    #[case(402, "", Verdict::Permanent)]
    #[case(403, "", Verdict::Permanent)]
    #[case(404, r#"{"error":"model 'x' not found"}"#, Verdict::Permanent)]
    #[case(307, "", Verdict::Permanent)]
    fn statuses(#[case] status: u16, #[case] body: &str, #[case] verdict: Verdict) {
        assert_eq!(ProviderError::with_status(status, body).verdict(), verdict);
    }

    #[rstest]
    #[case(json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}), Verdict::RateLimited)]
    #[case(json!({"type": "error", "code": "server_error", "message": "sorry"}), Verdict::Transient)]
    #[case(json!({"error": {"code": 502, "message": "upstream"}}), Verdict::Transient)]
    #[case(json!({"error": {"code": 429, "message": "slow down"}}), Verdict::RateLimited)]
    #[case(json!({"error": {"type": "invalid_request_error", "message": "no"}}), Verdict::Permanent)]
    #[case(json!({"code": "context_length_exceeded", "message": "too much"}), Verdict::TooLong)]
    #[case(json!({"error": "something"}), Verdict::Transient)]
    fn errors_inside_a_stream_are_judged_like_statuses(
        #[case] json: Value,
        #[case] verdict: Verdict,
    ) {
        assert_eq!(ProviderError::in_stream(&json).verdict(), verdict);
    }

    #[rstest]
    #[case("", "no reason given")]
    #[case("<!doctype html>\n<p>Bad gateway", "a web page")]
    #[case(r#"{"detail":"Not Found"}"#, "Not Found")]
    #[case(r#"{"error":"model 'x' not found"}"#, "model 'x' not found")]
    #[case(r#"{"message":"a\n  b"}"#, "a b")]
    #[case(
        r#"[{"error":{"code":400,"message":"API key not valid."}}]"#,
        "API key not valid."
    )]
    #[case(
        r#"{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"no such tool"}}}"#,
        "Provider returned error: no such tool"
    )]
    #[case(
        r#"{"error":{"message":"Provider returned error","metadata":{"raw":{"why": 1}}}}"#,
        "Provider returned error: {\"why\":1}"
    )]
    fn messages(#[case] body: &str, #[case] text: &str) {
        assert_eq!(ProviderError::with_status(400, body).message, text);
    }

    #[rstest]
    #[case(r#"[{"error":{"message":"Quota.","details":[{"@type":"Help"},{"@type":"RetryInfo","retryDelay":"37s"}]}}]"#, Some(37_000))]
    #[case(
        r#"{"error":{"message":"Rate limit reached. Please try again in 1.2s. Visit us."}}"#,
        Some(1_200)
    )]
    #[case(r#"{"error":{"message":"Rate limit reached"}}"#, None)]
    fn a_wait_may_be_asked_for_in_the_text(#[case] body: &str, #[case] ms: Option<u64>) {
        let wait = ProviderError::with_status(429, body).retry_after();
        assert_eq!(wait, ms.map(Duration::from_millis));
    }
}
