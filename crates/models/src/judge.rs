//! What a provider's refusal means: too long, too many, try again, or no.

use serde_json::Value;

/// What a provider says when it does not answer, in any of their dialects.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Complaint {
    /// The HTTP status, or the one that an error inside a stream stands for.
    pub(crate) status: Option<u16>,
    /// The provider's word for the kind of error.
    pub(crate) code: String,
    /// For people.
    pub(crate) message: String,
}

/// What to do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The conversation does not fit into the window.
    TooLong,
    /// Too many requests.
    Limited,
    /// It may pass.
    Passing,
    /// It will not.
    Refused,
}

/// Longer texts are web pages and stack traces.
const LONGEST_MESSAGE: usize = 500;

impl Complaint {
    /// A refusal with a status.
    pub(crate) fn with_status(status: u16, body: &str) -> Self {
        let mut complaint = match serde_json::from_str::<Value>(body) {
            Ok(json) => Self::in_json(&json),
            Err(_) => Self::in_text(body),
        };
        complaint.status = Some(status);
        if complaint.message.is_empty() {
            complaint.message = "no reason given".to_owned();
        }
        complaint
    }

    /// An error inside a stream that began well.
    pub(crate) fn in_stream(json: &Value) -> Self {
        let mut complaint = Self::in_json(json);
        complaint.status = complaint.status.or_else(|| status_of(&complaint.code));
        if complaint.message.is_empty() {
            complaint.message = match complaint.code.as_str() {
                "" => "an error without a reason".to_owned(),
                code => code.to_owned(),
            };
        }
        complaint
    }

    fn in_json(json: &Value) -> Self {
        let error = match json.get("error") {
            Some(Value::Null) | None => json,
            Some(error) => error,
        };
        if let Some(text) = error.as_str() {
            return Self::in_text(text);
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
        Self {
            status: number.and_then(|number| u16::try_from(number).ok()),
            code: code.join(" "),
            message: shortened(&message.unwrap_or_default()),
        }
    }

    fn in_text(text: &str) -> Self {
        let page = text.trim_start().starts_with('<');
        Self {
            message: if page {
                "a web page".to_owned()
            } else {
                shortened(text)
            },
            ..Self::default()
        }
    }

    /// One verdict for statuses and for errors inside streams.
    pub(crate) fn verdict(&self) -> Verdict {
        let status = self.status.unwrap_or(500);
        let code = self.code.as_str();
        if status == 413 || (!matches!(status, 401 | 403 | 404 | 429 | 529) && self.says_too_long())
        {
            return Verdict::TooLong;
        }
        match status {
            _ if code.contains("insufficient_quota") => Verdict::Refused,
            429 | 529 => Verdict::Limited,
            408 | 409 | 500.. => Verdict::Passing,
            _ => Verdict::Refused,
        }
    }

    fn says_too_long(&self) -> bool {
        let text = format!("{} {}", self.code, self.message).to_lowercase();
        let said = |words: &[&str]| words.iter().all(|word| text.contains(word));
        TOO_LONG.iter().any(|words| said(words))
    }

    /// For people, with what they would search for.
    pub(crate) fn text(&self) -> String {
        match self.status {
            Some(status) => format!("{status}, {}", self.message),
            None => self.message.clone(),
        }
    }
}

/// How providers say that a conversation is too long: all words of a row.
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

fn shortened(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    match line.char_indices().nth(LONGEST_MESSAGE) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
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
    #[case::proxy(413, "<html>413</html>")]
    fn too_long(#[case] status: u16, #[case] body: &str) {
        let complaint = Complaint::with_status(status, body);
        assert_eq!(complaint.verdict(), Verdict::TooLong, "{complaint:?}");
    }

    #[rstest]
    #[case(
        429,
        r#"{"error":{"message":"Rate limit reached","code":"rate_limit_exceeded"}}"#,
        Verdict::Limited
    )]
    #[case(
        429,
        r#"{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}"#,
        Verdict::Refused
    )]
    #[case(
        529,
        r#"{"error":{"type":"overloaded_error","message":"Overloaded"}}"#,
        Verdict::Limited
    )]
    #[case(408, "", Verdict::Passing)]
    #[case(409, "", Verdict::Passing)]
    #[case(500, "oops", Verdict::Passing)]
    #[case(503, "<html>", Verdict::Passing)]
    #[case(400, r#"{"error":{"message":"bad"}}"#, Verdict::Refused)]
    #[case(401, "", Verdict::Refused)]
    #[case(402, "", Verdict::Refused)]
    #[case(403, "", Verdict::Refused)]
    #[case(404, r#"{"error":"model 'x' not found"}"#, Verdict::Refused)]
    #[case(307, "", Verdict::Refused)]
    fn statuses(#[case] status: u16, #[case] body: &str, #[case] verdict: Verdict) {
        assert_eq!(Complaint::with_status(status, body).verdict(), verdict);
    }

    #[rstest]
    #[case(json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}), Verdict::Limited)]
    #[case(json!({"type": "error", "code": "server_error", "message": "sorry"}), Verdict::Passing)]
    #[case(json!({"error": {"code": 502, "message": "upstream"}}), Verdict::Passing)]
    #[case(json!({"error": {"code": 429, "message": "slow down"}}), Verdict::Limited)]
    #[case(json!({"error": {"type": "invalid_request_error", "message": "no"}}), Verdict::Refused)]
    #[case(json!({"code": "context_length_exceeded", "message": "too much"}), Verdict::TooLong)]
    #[case(json!({"error": "something"}), Verdict::Passing)]
    fn errors_inside_a_stream_are_judged_like_statuses(
        #[case] json: Value,
        #[case] verdict: Verdict,
    ) {
        assert_eq!(Complaint::in_stream(&json).verdict(), verdict);
    }

    #[rstest]
    #[case("", "no reason given")]
    #[case("<!doctype html>\n<p>Bad gateway", "a web page")]
    #[case(r#"{"detail":"Not Found"}"#, "Not Found")]
    #[case(r#"{"error":"model 'x' not found"}"#, "model 'x' not found")]
    #[case(r#"{"message":"a\n  b"}"#, "a b")]
    fn messages(#[case] body: &str, #[case] text: &str) {
        assert_eq!(Complaint::with_status(400, body).message, text);
    }
}
