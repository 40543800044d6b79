//! How a conversation is written down for a child.

use std::borrow::Borrow;

use super::{
    cut_results::{Inherited, ResultKind, Shown, ShownResult},
    cut_text::{Kept, Slice, marker},
};
use crate::transcript::Role;

/// Opens the context.
pub(super) const OPEN: &str = "<inherited_context>\n\n";
/// Closes the context; nothing inherited may.
pub(super) const CLOSE: &str = "</inherited_context>";

const TAG: &str = "inherited_context";

/// One message, written. Begins with a letter and ends with a line break, and a blank
/// line if another message follows: that is what makes token counts add up.
pub(super) struct Block {
    pub(super) text: String,
    pub(super) size: Size,
}

/// How long something is, or how much room there is.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Size {
    pub(super) chars: usize,
    pub(super) tokens: usize,
}

/// The characters of a context without messages.
pub(super) fn wrapper_chars() -> usize {
    OPEN.chars().count() + CLOSE.chars().count()
}

/// Puts the messages, oldest first, into the wrapper.
pub(super) fn wrap(blocks: &[Block]) -> String {
    let bytes: usize = blocks.iter().map(|block| block.text.len()).sum();
    let mut context = String::with_capacity(OPEN.len() + bytes + CLOSE.len());
    context.push_str(OPEN);
    for block in blocks {
        context.push_str(&block.text);
    }
    context.push_str(CLOSE);
    context
}

/// How many characters [`write`] would write.
pub(super) fn measure(message: &Inherited, last: bool) -> usize {
    measure_parts(message.role, &message.parts, last)
}

/// The same, for parts that nobody keeps.
pub(super) fn measure_parts<'t>(
    role: Role,
    parts: impl IntoIterator<Item = impl Borrow<Shown<'t>>>,
    last: bool,
) -> usize {
    let mut body = Length::default();
    lay_out(parts, &mut body);
    label(role).len() + body.chars + separator(last).len()
}

/// Writes one message; `last` if it is the newest.
pub(super) fn write(message: &Inherited, last: bool) -> String {
    let mut length = Length::default();
    lay_out(&message.parts, &mut length);
    let mut text = String::with_capacity(length.bytes + 16);
    text.push_str(label(message.role));
    lay_out(&message.parts, &mut text);
    text.push_str(separator(last));
    harmless(text)
}

/// Writes one message in at most `most` characters: its label, and of the rest the
/// beginning and the end with a marker between them. Nothing else is copied.
pub(super) fn write_shortened(
    message: &Inherited,
    last: bool,
    most: usize,
    head_percent: usize,
) -> String {
    let mut body = Length::default();
    lay_out(&message.parts, &mut body);
    let (label, separator) = (label(message.role), separator(last));
    let longest_marker = marker(body.chars, body.chars).len();
    let keep = most
        .saturating_sub(label.len() + longest_marker + separator.len())
        .min(body.chars);
    let head = keep * head_percent / 100;
    let mut window = Window {
        at: 0,
        head_end: head,
        tail_start: body.chars - (keep - head),
        head: String::new(),
        tail: String::new(),
    };
    lay_out(&message.parts, &mut window);
    let marker = marker(body.chars - keep, body.chars);
    harmless([label, &window.head, &marker, &window.tail, separator].concat())
}

fn label(role: Role) -> &'static str {
    match role {
        Role::User => "User:\n",
        Role::Assistant => "Agent:\n",
    }
}

fn separator(last: bool) -> &'static str {
    if last { "" } else { "\n" }
}

/// Where a layout goes.
trait Page {
    /// Words of the format itself, ASCII all of them.
    fn label(&mut self, label: &str);
    /// The parent's text.
    fn text(&mut self, text: Slice);
}

#[derive(Default)]
struct Length {
    chars: usize,
    bytes: usize,
}

impl Page for Length {
    fn label(&mut self, label: &str) {
        self.chars += label.len();
        self.bytes += label.len();
    }

    fn text(&mut self, text: Slice) {
        self.chars += text.chars;
        self.bytes += text.text.len();
    }
}

impl Page for String {
    fn label(&mut self, label: &str) {
        self.push_str(label);
    }

    fn text(&mut self, text: Slice) {
        self.push_str(text.text);
    }
}

/// Takes what is before one character and what is from another one on.
struct Window {
    at: usize,
    head_end: usize,
    tail_start: usize,
    head: String,
    tail: String,
}

impl Page for Window {
    fn label(&mut self, label: &str) {
        self.text(Slice::counted(label));
    }

    fn text(&mut self, text: Slice) {
        let end = self.at + text.chars;
        let in_head = self.head_end.saturating_sub(self.at).min(text.chars);
        let in_tail = end.saturating_sub(self.tail_start).min(text.chars);
        self.head.push_str(text.first(in_head).text);
        self.tail.push_str(text.last(in_tail).text);
        self.at = end;
    }
}

/// The one place that knows the layout of a message's parts, so that measuring and
/// writing cannot differ. Every part ends its line.
fn lay_out<'t>(parts: impl IntoIterator<Item = impl Borrow<Shown<'t>>>, page: &mut impl Page) {
    for part in parts {
        match part.borrow() {
            Shown::Text(text) => {
                page.text(*text);
                end_line(text.ends_line, page);
            }
            Shown::Call {
                name,
                params,
                result,
            } => {
                page.label("[Tool: ");
                page.text(*name);
                page.label("] ");
                lay_out_kept(params, page);
                page.label("\n");
                if let Some(result) = result {
                    lay_out_result(result, page);
                }
            }
        }
    }
}

fn lay_out_result(result: &ShownResult, page: &mut impl Page) {
    page.label(match result.kind {
        ResultKind::Output => "[Tool result",
        ResultKind::Error => "[Tool error",
        ResultKind::None => "[No result",
    });
    if let Some(id) = result.call_id {
        page.label(" ");
        page.text(Slice::counted(id));
    }
    page.label("]\n");
    lay_out_kept(&result.text, page);
    end_line(result.text.ends_line(), page);
}

fn lay_out_kept(kept: &Kept, page: &mut impl Page) {
    page.text(kept.head);
    page.label(&kept.marker);
    page.text(kept.tail);
}

fn end_line(ended: bool, page: &mut impl Page) {
    if !ended {
        page.label("\n");
    }
}

/// Makes sure that nothing in a message can be taken for the wrapper: the `<` of anything
/// that looks like its tag becomes `‹`. One character for one, so no length changes. A
/// whole message at a time, for a tag may be made of two of its parts.
fn harmless(text: String) -> String {
    let mut safe = String::new();
    let mut copied = 0;
    for at in memchr::memchr_iter(b'<', text.as_bytes()) {
        if opens_tag(&text[at + 1..]) {
            safe.push_str(&text[copied..at]);
            safe.push('‹');
            copied = at + 1;
        }
    }
    if copied == 0 {
        return text;
    }
    safe.push_str(&text[copied..]);
    safe
}

/// Whether what follows a `<` reads as the wrapper's tag, as a lenient reader would.
fn opens_tag(rest: &str) -> bool {
    let name = rest.trim_start();
    let name = name.strip_prefix('/').unwrap_or(name).trim_start();
    let name = name.as_bytes().get(..TAG.len());
    name.is_some_and(|name| name.eq_ignore_ascii_case(TAG.as_bytes()))
}
