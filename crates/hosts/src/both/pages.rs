//! A session's messages, page by page, newest first.

use asyncagents_core::{id::SessionId, port::HostError, read::Format};
use serde::de::DeserializeOwned;

use crate::connection::{Connection, Request, Response};

use super::response::{TOO_LONG, parse};

/// How many messages the first page has. A request takes OpenCode longer than the messages do, so
/// each page has twice as many as the one before.
pub(crate) const PAGE: usize = 100;

/// How much of a conversation is read at most, in bytes, as for one answer: a server may always
/// have one more page.
const LONGEST_READING: usize = 256 * 1024 * 1024;

/// What a page counts for at least, so that empty ones come to an end as well.
const LEAST_PAGE: usize = 16 * 1024;

/// How a generation of OpenCode lists the messages of a session.
pub(crate) trait MessagePages: Sync {
    fn connection(&self) -> &dyn Connection;

    /// How the messages are written.
    fn format(&self) -> Format;

    /// How many messages are asked for at most.
    fn widest(&self) -> usize;

    /// The parameter of a request that says where its page begins.
    fn cursor(&self) -> &'static str;

    /// Asks for the messages of a session.
    fn request(&self, session: &SessionId) -> Result<Request, HostError>;

    /// The page that was asked for by this path, with so many messages at most.
    fn page(&self, response: Response, path: &str, limit: usize) -> Result<Page, HostError>;
}

/// A page of messages.
pub(crate) struct Page {
    /// A JSON list, oldest first, of the messages as OpenCode wrote them.
    pub(crate) list: String,
    /// Where the page of older messages begins, if there may be one.
    pub(crate) older: Option<String>,
}

impl Page {
    /// The messages, newest first.
    pub(crate) fn newest_first<M: DeserializeOwned>(&self) -> Result<Vec<M>, HostError> {
        let mut messages: Vec<M> = parse(&self.list)?;
        messages.reverse();
        Ok(messages)
    }
}

/// The pages of a session's messages, newest first.
#[derive(Clone)]
pub(crate) struct Pages<'a> {
    api: &'a dyn MessagePages,
    session: &'a SessionId,
    size: usize,
    widest: usize,
    next: Next,
    /// How much was read, in bytes.
    read: usize,
}

#[derive(Clone)]
enum Next {
    Newest,
    Before(String),
    Nothing,
}

impl<'a> Pages<'a> {
    pub(crate) fn new(api: &'a dyn MessagePages, session: &'a SessionId, size: usize) -> Self {
        Self {
            api,
            session,
            size,
            widest: api.widest(),
            next: Next::Newest,
            read: 0,
        }
    }

    /// The next page, unless too much was read. Where so many messages do not get through, fewer
    /// are asked for, then and later.
    pub(crate) async fn next(&mut self) -> Result<Option<Page>, HostError> {
        let before = match &self.next {
            Next::Newest => None,
            Next::Before(cursor) => Some(cursor.as_str()),
            Next::Nothing => return Ok(None),
        };
        let page = loop {
            let request = self.api.request(self.session)?;
            let mut request = request.query("limit", self.size.to_string());
            if let Some(before) = before {
                request = request.query(self.api.cursor(), before);
            }
            let path = request.path.clone();
            let response = self.api.connection().send(request).await?;
            if response.status != TOO_LONG || self.size == 1 {
                break self.api.page(response, &path, self.size)?;
            }
            self.size /= 2;
            self.widest = self.size;
        };
        self.read = self.read.saturating_add(page.list.len().max(LEAST_PAGE));
        if self.read > LONGEST_READING {
            let (session, most) = (self.session, LONGEST_READING / (1024 * 1024));
            let why = format!("the conversation of {session} is longer than {most} MB");
            return Err(HostError::Refused(why));
        }
        self.size = (self.size * 2).min(self.widest);
        self.next = match &page.older {
            Some(cursor) => Next::Before(cursor.clone()),
            None => Next::Nothing,
        };
        Ok(Some(page))
    }

    /// How the messages are written.
    pub(crate) fn format(&self) -> Format {
        self.api.format()
    }

    /// Whether there may be something that was not read.
    pub(crate) fn has_more(&self) -> bool {
        !matches!(self.next, Next::Nothing)
    }
}
