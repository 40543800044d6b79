//! A session's messages, page by page, newest first.

use asyncagents_core::{id::SessionId, port::HostError};

use super::api::{Api, Page};

/// How many messages the first page has. A request takes OpenCode longer than the messages do, so
/// each page has twice as many as the one before.
pub(super) const PAGE: usize = 100;
/// How many messages OpenCode gives at most.
pub(super) const WIDEST: usize = 200;

/// The pages of a session's messages, newest first.
pub(super) struct Pages<'a> {
    api: &'a Api,
    session: &'a SessionId,
    size: usize,
    widest: usize,
    next: Next,
}

enum Next {
    Newest,
    Before(String),
    Nothing,
}

impl<'a> Pages<'a> {
    pub(super) fn new(api: &'a Api, session: &'a SessionId, size: usize) -> Self {
        Self {
            api,
            session,
            size,
            widest: WIDEST,
            next: Next::Newest,
        }
    }

    pub(super) async fn next(&mut self) -> Result<Option<Page>, HostError> {
        let before = match &self.next {
            Next::Newest => None,
            Next::Before(cursor) => Some(cursor.as_str()),
            Next::Nothing => return Ok(None),
        };
        let asked = self.size;
        let page = self.api.page(self.session, &mut self.size, before).await?;
        if self.size < asked {
            self.widest = self.size;
        }
        self.size = (self.size * 2).min(self.widest);
        self.next = match &page.older {
            Some(cursor) => Next::Before(cursor.clone()),
            None => Next::Nothing,
        };
        Ok(Some(page))
    }

    /// Whether there may be something that was not read.
    pub(super) fn has_more(&self) -> bool {
        !matches!(self.next, Next::Nothing)
    }
}
