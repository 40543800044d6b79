//! A question as it is drawn: who wants to do what, in words that hide nothing.

use asyncagents_core::agent::Preview;
use asyncagents_engine::Question;

use crate::{
    make_visible::{make_visible, visible_beginning},
    screen::counted,
};

/// How many characters of a task's title are drawn. It says who asks, not what for.
const MOST_OF_TITLE: usize = 80;

/// As many blank lines as good style has between functions are drawn as they are.
const MOST_BLANK: usize = 2;

/// How much of a question is drawn.
#[derive(Clone, Copy)]
pub(super) struct Extent {
    /// Of each text.
    lines: usize,
    /// Of each line.
    characters: usize,
}

impl Extent {
    /// Until the user asks for all.
    pub(super) const BEGINNING: Self = Self {
        lines: 12,
        characters: 160,
    };
    pub(super) const WHOLE: Self = Self {
        lines: usize::MAX,
        characters: usize::MAX,
    };
}

/// A question, ready to be put on the screen.
pub(super) struct Drawn {
    /// Who wants to do what, in whole lines.
    pub(super) question: String,
    /// The answers there are, after which one is typed.
    pub(super) answers: String,
}

/// Draws a question.
pub(super) fn draw(question: &Question, extent: Extent) -> Drawn {
    let mut page = Page {
        text: String::new(),
        extent,
        hides: false,
    };
    page.headline(question);
    match &question.preview {
        Preview::Command(command) => page.passage("$", command),
        Preview::Write { content } => page.passage("+", content),
        Preview::Edit {
            old,
            new,
            everywhere,
        } => {
            if *everywhere {
                page.remark("wherever the file has it:");
            }
            page.passage("-", old);
            page.passage("+", new);
        }
        Preview::Arguments(arguments) => {
            for (name, value) in arguments {
                page.passage(&format!("{}:", make_visible(name)), value);
            }
        }
    }
    let always = make_visible(&question.always);
    let view = if page.hides { "[v]iew all, " } else { "" };
    Drawn {
        question: page.text,
        answers: format!("  [y]es, [a]lways ({always}), {view}or [n]o (and why): "),
    }
}

/// Lines of a model begin with a sign, remarks about them do not: no text can pass for a remark.
struct Page {
    text: String,
    extent: Extent,
    /// Whether something is left out.
    hides: bool,
}

impl Page {
    fn headline(&mut self, question: &Question) {
        let who = if question.background {
            let (title, left) = visible_beginning(&question.title, MOST_OF_TITLE);
            let more = if left > 0 { "…" } else { "" };
            format!("the background task \"{title}{more}\"")
        } else {
            format!("the agent {}", make_visible(question.agent.as_str()))
        };
        let tool = make_visible(&question.tool);
        let target = match &question.preview {
            // A command is drawn line by line.
            Preview::Command(_) => "",
            Preview::Write { .. } | Preview::Edit { .. } | Preview::Arguments(_) => {
                &question.target
            }
        };
        self.cut_line(&format!("? {who} wants to use {tool}: "), target);
    }

    /// A text of the model, line by line.
    fn passage(&mut self, sign: &str, text: &str) {
        // Not `lines`, which would drop a carriage return.
        let lines = text.strip_suffix('\n').unwrap_or(text).split('\n');
        let lines: Vec<&str> = lines.filter(|_| !text.is_empty()).collect();
        let mut rest = lines.as_slice();
        let mut drawn = 0;
        while let Some((line, after)) = rest.split_first() {
            if drawn == self.extent.lines {
                self.hides = true;
                let left = counted(rest.len() as u64, "more line");
                return self.remark(&format!("… {left}"));
            }
            let blank = rest.iter().take_while(|line| is_blank(line)).count();
            if blank > MOST_BLANK {
                self.remark(&format!("⏎ {}", counted(blank as u64, "blank line")));
                rest = rest.get(blank..).unwrap_or_default();
            } else {
                self.line(sign, line);
                rest = after;
            }
            drawn += 1;
        }
    }

    fn line(&mut self, sign: &str, line: &str) {
        self.cut_line(&format!("  {sign} "), line);
        let blanks = line.len() - line.trim_end_matches([' ', '\t']).len();
        // After a backslash they are what it stands before, and not the end of the line.
        if line.trim_end().ends_with('\\') && blanks > 0 {
            let blanks = counted(blanks as u64, "blank");
            self.remark(&format!("⏎ {blanks} at the end of this line"));
        }
    }

    /// A line of the model behind a head of ours, and how many characters of it are left out.
    fn cut_line(&mut self, head: &str, line: &str) {
        let (shown, left) = visible_beginning(line, self.extent.characters);
        let shown = format!("{head}{shown}");
        self.text.push_str(shown.trim_end());
        self.text.push('\n');
        if left > 0 {
            self.hides = true;
            let left = counted(left as u64, "more character");
            self.remark(&format!("… {left} in this line"));
        }
    }

    fn remark(&mut self, remark: &str) {
        self.text.push_str(&format!("  {remark}\n"));
    }
}

fn is_blank(line: &str) -> bool {
    line.chars().all(|c| matches!(c, ' ' | '\t'))
}

#[cfg(test)]
mod tests {
    use asyncagents_core::agent::Preview;
    use asyncagents_core::id::{AgentName, SessionId};
    use asyncagents_engine::Question;
    use insta::assert_snapshot;

    use super::{Extent, draw};

    fn question(tool: &str, target: &str, preview: Preview) -> Question {
        let always = match preview {
            Preview::Command(_) => "exactly this".to_owned(),
            _ => format!("every {tool} in this run"),
        };
        Question {
            session: SessionId::from("ses_1"),
            title: "Count the files".to_owned(),
            background: false,
            agent: AgentName::from("general"),
            call: "call_1".to_owned(),
            tool: tool.to_owned(),
            target: target.to_owned(),
            preview,
            always,
        }
    }

    fn command(command: &str) -> Question {
        question("bash", command, Preview::Command(command.to_owned()))
    }

    fn drawn(question: &Question, extent: Extent) -> String {
        let drawn = draw(question, extent);
        drawn.question + &drawn.answers
    }

    fn numbered(lines: usize) -> String {
        let line = |n| format!("echo {n}\n");
        (1..=lines).map(line).collect()
    }

    #[test]
    fn a_short_command_is_drawn_whole() {
        assert_snapshot!(drawn(
            &command("cargo test\n\ncargo doc\n"),
            Extent::BEGINNING
        ));
    }

    #[test]
    fn of_a_long_command_the_beginning_is_drawn_and_then_all() {
        let command = command(&numbered(18));
        let both = [Extent::BEGINNING, Extent::WHOLE].map(|extent| drawn(&command, extent));
        assert_snapshot!(both.join("\n\n"));
    }

    #[test]
    fn blank_lines_take_no_room() {
        let blank = format!("{}rm -rf build\n\n\nls\n", "\n \n\t\n".repeat(400));
        assert_snapshot!(drawn(&command(&blank), Extent::BEGINNING));
    }

    #[test]
    fn blanks_that_change_a_command_are_told() {
        let drawn = drawn(&command("echo \\ \nrm x\n"), Extent::WHOLE);
        assert!(
            drawn.contains("  $ echo \\\n  ⏎ 1 blank at the end of this line\n  $ rm x\n"),
            "{drawn}"
        );
    }

    #[test]
    fn a_long_line_is_cut_and_then_whole() {
        let long = command(&format!("echo ok{}; rm -rf build\nls", " ".repeat(180)));
        let both = [Extent::BEGINNING, Extent::WHOLE].map(|extent| drawn(&long, extent));
        assert_snapshot!(both.join("\n\n"));
    }

    #[test]
    fn what_cannot_be_seen_is_drawn_by_name() {
        let mut hidden = question(
            "write",
            "notes\u{202e}dm.sh\nx",
            Preview::Write {
                content: "a\u{200b}b\r\nc\u{3164}\n\u{1b}[2J\n".to_owned(),
            },
        );
        hidden.background = true;
        hidden.title = "Count\u{2066} \"the\" files".to_owned();
        assert_snapshot!(drawn(&hidden, Extent::BEGINNING));
    }

    #[test]
    fn an_edit_is_drawn_as_what_goes_and_what_comes() {
        let edit = Preview::Edit {
            old: numbered(14),
            new: "make all\n".to_owned(),
            everywhere: true,
        };
        let edit = question("edit", "build.sh", edit);
        assert_snapshot!(drawn(&edit, Extent::BEGINNING));
    }

    #[test]
    fn another_tool_is_drawn_with_its_arguments() {
        let arguments = [("fork", "true"), ("prompt", "Child:\nDelete the tests.")];
        let arguments = arguments.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let preview = Preview::Arguments(arguments.to_vec());
        let task = question("asyncagents_task", "Tidy up", preview);
        assert_snapshot!(drawn(&task, Extent::BEGINNING));
    }

    #[test]
    fn no_text_passes_for_a_remark() {
        let text = command("echo ok\n… 1 more line\n⏎ 3 blank lines\n");
        let drawn = drawn(&text, Extent::WHOLE);
        assert!(
            drawn.contains("  $ … 1 more line\n  $ ⏎ 3 blank lines\n"),
            "{drawn}"
        );
    }
}
