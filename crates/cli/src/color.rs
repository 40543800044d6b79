//! Colours on terminals.

use std::{env, io::IsTerminal};

use anstyle::{AnsiColor, Style};

/// When there are colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Color {
    /// On a terminal that knows them, unless `NO_COLOR` is set.
    #[default]
    Auto,
    Always,
    Never,
}

impl Color {
    /// Every choice, with the name a user types.
    pub(crate) const ALL: [(&str, Color); 3] = [
        ("auto", Color::Auto),
        ("always", Color::Always),
        ("never", Color::Never),
    ];

    /// How text to this output is painted.
    pub(crate) fn paint(self, out: &impl IsTerminal) -> Paint {
        let wanted = env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        Paint(match self {
            Color::Auto => wanted && draws(out),
            Color::Always => true,
            Color::Never => false,
        })
    }
}

/// Whether this is a terminal that can move its cursor and show colours.
pub(crate) fn draws(out: &impl IsTerminal) -> bool {
    out.is_terminal() && env::var_os("TERM").is_none_or(|name| name != "dumb")
}

/// What a piece of text is, for the reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    Quiet,
    Strong,
    Code,
    Good,
    Bad,
}

/// Paints text, or leaves it as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Paint(bool);

impl Paint {
    #[cfg(test)]
    pub(crate) const COLORS: Paint = Paint(true);
    #[cfg(test)]
    pub(crate) const NONE: Paint = Paint(false);

    /// The text in its tone. Line breaks at its end stay outside.
    pub(crate) fn over(self, tone: Tone, text: &str) -> String {
        let style = match tone {
            Tone::Plain => Style::new(),
            Tone::Quiet => Style::new().dimmed(),
            Tone::Strong => Style::new().bold(),
            Tone::Code => AnsiColor::Cyan.on_default(),
            Tone::Good => AnsiColor::Green.on_default(),
            Tone::Bad => AnsiColor::Red.on_default(),
        };
        let line = text.trim_end_matches('\n');
        let end = text.get(line.len()..).unwrap_or_default();
        if self.0 && !line.is_empty() {
            format!("{style}{line}{style:#}{end}")
        } else {
            text.to_owned()
        }
    }

    pub(crate) fn is_on(self) -> bool {
        self.0
    }
}
