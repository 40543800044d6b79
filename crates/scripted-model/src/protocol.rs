//! The protocols, and what is fixed in each.

/// A protocol between a client and a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Wire {
    /// Anthropic Messages, `POST /v1/messages`.
    Anthropic,
    /// OpenAI Responses, `POST /v1/responses`.
    Responses,
    /// OpenAI Chat Completions, `POST /v1/chat/completions`.
    Chat,
    /// Google Gemini, `POST /v1beta/models/MODEL:generateContent` and `:streamGenerateContent`.
    Gemini,
}

impl Wire {
    /// The status that says what the error event says.
    pub(crate) fn overloaded_status(self) -> u16 {
        match self {
            Self::Anthropic => 529,
            Self::Responses | Self::Chat | Self::Gemini => 503,
        }
    }

    /// How the ids of tool calls begin.
    pub(crate) fn call_prefix(self) -> &'static str {
        match self {
            Self::Anthropic => "toolu",
            Self::Responses | Self::Chat | Self::Gemini => "call",
        }
    }

    /// The header with the id of a request.
    pub(crate) fn request_id_header(self) -> &'static str {
        match self {
            Self::Anthropic => "request-id",
            Self::Responses | Self::Chat | Self::Gemini => "x-request-id",
        }
    }
}
