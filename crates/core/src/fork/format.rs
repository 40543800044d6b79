//! How a conversation is written down for a child.

use super::{
    cut_text::{Slice, marker},
    inherited::{Inherited, Shown, ShownCall},
};
use crate::{
    foreign_tags::without_tag,
    transcript::{Outcome, Role},
};

/// Opens the context.
pub(super) const OPEN: &str = "<inherited_context>\n\n";
/// Closes the context; nothing inherited may.
pub(super) const CLOSE: &str = "</inherited_context>";

const TAG: &str = "inherited_context";

/// One message, written. Begins with a letter and ends with a line break, and a blank
/// line if another message follows: that is what makes token counts add up.
pub(super) struct Block<'t> {
    pub(super) message: Inherited<'t>,
    pub(super) text: String,
    /// Whether it was too long as a whole, so that anything in it may be missing.
    pub(super) cut: bool,
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

/// How much [`write`] would write.
pub(super) fn measure(message: &Inherited, last: bool) -> Length {
    let mut length = Length::default();
    length.label(label(message.original().role));
    lay_out(&message.parts, &mut length);
    length.label(separator(last));
    length
}

/// The characters of parts that are not kept: without the IDs of calls, and what those would add.
pub(super) fn measure_ids_apart<'t>(
    role: Role,
    parts: impl Iterator<Item = Shown<'t>>,
) -> (usize, usize) {
    let (mut plain, mut with_ids) = (Length::default(), Length::default());
    for mut part in parts {
        lay_out([&part], &mut with_ids);
        if let Shown::Call(call) = &mut part {
            call.id = None;
        }
        lay_out([&part], &mut plain);
    }
    let chars = label(role).len() + plain.chars + separator(false).len();
    (chars, with_ids.chars - plain.chars)
}

/// Writes one message, which has so many bytes; `last` if it is the newest.
pub(super) fn write(message: &Inherited, last: bool, bytes: usize) -> String {
    let mut text = String::with_capacity(bytes);
    text.push_str(label(message.original().role));
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
    let (label, separator) = (label(message.original().role), separator(last));
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
pub(super) struct Length {
    pub(super) chars: usize,
    pub(super) bytes: usize,
}

impl Page for Length {
    fn label(&mut self, label: &str) {
        self.chars += label.len();
        self.bytes += label.len();
    }

    fn text(&mut self, text: Slice) {
        self.chars += text.chars;
        self.bytes += text.bytes();
    }
}

impl Page for String {
    fn label(&mut self, label: &str) {
        self.push_str(label);
    }

    fn text(&mut self, text: Slice) {
        self.push_str(text.text());
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
        self.head.push_str(text.first(in_head).text());
        self.tail.push_str(text.last(in_tail).text());
        self.at = end;
    }
}

/// The one place that knows the layout of a message's parts, so that measuring and
/// writing cannot differ. Every part ends its line.
fn lay_out<'p, 't: 'p>(parts: impl IntoIterator<Item = &'p Shown<'t>>, page: &mut impl Page) {
    for part in parts {
        match part {
            Shown::Text(text) => {
                page.text(*text);
                end_line(text.ends_line, page);
            }
            Shown::Call(call) => lay_out_call(call, page),
        }
    }
}

fn lay_out_call(call: &ShownCall, page: &mut impl Page) {
    page.label("[Tool: ");
    page.text(Slice::all(&call.call.name));
    page.label("] ");
    page.text(call.params);
    page.label(if call.params_cut { "...\n" } else { "\n" });
    page.label(match call.call.outcome {
        // Without a result there is nothing to show but an ID.
        Outcome::Pending if call.id.is_none() => return,
        Outcome::Pending => "[No result",
        Outcome::Completed(_) | Outcome::Cleared => "[Tool result",
        Outcome::Failed(_) => "[Tool error",
    });
    if let Some(id) = call.id {
        page.label(" ");
        page.text(Slice::counted(id));
    }
    page.label("]\n");
    page.text(call.result.head);
    page.label(&call.result.marker);
    page.text(call.result.tail);
    end_line(call.result.ends_line(), page);
}

fn end_line(ended: bool, page: &mut impl Page) {
    if !ended {
        page.label("\n");
    }
}

/// Makes sure that nothing in a message can be taken for the wrapper. A whole message at a time,
/// for a tag may be made of two of its parts.
fn harmless(text: String) -> String {
    without_tag(text, TAG)
}
