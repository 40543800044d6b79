//! One question: it is drawn, and then an answer counts.

use std::{io, time::Duration};

use async_trait::async_trait;
use asyncagents_engine::{Approver, Question, Reply};
use tokio::time;

use super::{
    draw_question::{Extent, draw},
    typed::{forget_typed, next_line},
};
use crate::{
    make_visible::make_visible,
    screen::{ForQuestion, Screen},
};

/// The text before the question comes to the screen by another way, and belongs above it.
const TEXT_BEFORE: Duration = Duration::from_millis(20);

#[async_trait]
impl Approver for Screen {
    async fn ask(&self, question: Question) -> Reply {
        time::sleep(TEXT_BEFORE).await;
        let mut screen = self.for_question().await;
        let reply = ask(&mut screen, &question).await;
        reply.unwrap_or_else(|error| Reply::No(format!("nobody can be asked: {error}")))
    }

    fn answered_elsewhere(&self, question: &Question) {
        let text = format!("{} was answered elsewhere", question.tool);
        self.remark(&make_visible(&text));
    }
}

async fn ask(screen: &mut ForQuestion<'_>, question: &Question) -> io::Result<Reply> {
    let mut drawn = draw(question, Extent::BEGINNING);
    screen.draw(&drawn.question);
    loop {
        // An answer counts only after all of the question was drawn. What was typed earlier was
        // meant for something else.
        forget_typed().await?;
        screen.draw(&drawn.answers);
        let Some(line) = next_line().await? else {
            return Ok(Reply::No("nobody answered".to_owned()));
        };
        screen.line_ended();
        match answer_from(&line) {
            Answer::Reply(reply) => return Ok(reply),
            Answer::View => {
                drawn = draw(question, Extent::WHOLE);
                screen.draw(&drawn.question);
            }
            Answer::Unclear => {}
        }
    }
}

/// What a line means.
#[derive(Debug, PartialEq, Eq)]
enum Answer {
    Reply(Reply),
    /// Show all of it, and ask again.
    View,
    Unclear,
}

fn answer_from(line: &str) -> Answer {
    let line = line.trim();
    let (word, rest) = line.split_once([' ', ',']).unwrap_or((line, ""));
    let rest = rest.trim();
    Answer::Reply(match (word.to_lowercase().as_str(), rest) {
        ("y" | "yes", "") => Reply::Yes,
        ("a" | "always", "") => Reply::Always,
        ("n" | "no", "") => Reply::No("the user says no".to_owned()),
        ("n" | "no", why) => Reply::No(format!("the user says no: {why}")),
        ("v" | "view", "" | "all") => return Answer::View,
        // A yes with conditions would be taken for one without.
        _ => return Answer::Unclear,
    })
}

#[cfg(test)]
mod tests {
    use asyncagents_engine::Reply;
    use rstest::rstest;

    use super::{Answer, answer_from};

    #[rstest]
    #[case::yes("y\n", Answer::Reply(Reply::Yes))]
    #[case::loud(" YES \n", Answer::Reply(Reply::Yes))]
    #[case::always("a\n", Answer::Reply(Reply::Always))]
    #[case::view("v\n", Answer::View)]
    #[case::view_all("view all\n", Answer::View)]
    #[case::no("n\n", Answer::Reply(Reply::No("the user says no".to_owned())))]
    #[case::why("no, use make\n", Answer::Reply(Reply::No("the user says no: use make".to_owned())))]
    #[case::nothing("\n", Answer::Unclear)]
    #[case::condition("yes, but only in src\n", Answer::Unclear)]
    #[case::twice("yy\n", Answer::Unclear)]
    fn a_line_is_an_answer(#[case] line: &str, #[case] answer: Answer) {
        assert_eq!(answer_from(line), answer);
    }
}
