//! The body of a skill when it is invoked: what is filled in, and which commands are run.

use super::arguments::words;

/// What a body refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Surroundings<'a> {
    /// What was said behind the skill's name.
    pub arguments: &'a str,
    /// The folder of the skill.
    pub skill_dir: &'a str,
    /// The session that invokes it.
    pub session: &'a str,
    /// The folder of the project.
    pub project_dir: &'a str,
    /// The folder of the plugin that the skill is part of.
    pub plugin_root: Option<&'a str>,
    /// How hard the model thinks.
    pub effort: &'a str,
}

/// What stands for a part of the surroundings. A body and the patterns of `allowed-tools` have
/// the same ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Variable {
    SkillDir,
    Session,
    ProjectDir,
    PluginRoot,
    Effort,
}

impl Variable {
    pub(super) const ALL: [(&'static str, Variable); 6] = [
        ("${CLAUDE_SKILL_DIR}", Variable::SkillDir),
        // As early skills have it.
        ("{baseDir}", Variable::SkillDir),
        ("${CLAUDE_SESSION_ID}", Variable::Session),
        ("${CLAUDE_PROJECT_DIR}", Variable::ProjectDir),
        ("${CLAUDE_PLUGIN_ROOT}", Variable::PluginRoot),
        ("${CLAUDE_EFFORT}", Variable::Effort),
    ];

    /// What it stands for; nothing where there is no such thing.
    pub(super) fn value<'a>(self, around: &Surroundings<'a>) -> Option<&'a str> {
        match self {
            Variable::SkillDir => Some(around.skill_dir),
            Variable::Session => Some(around.session),
            Variable::ProjectDir => Some(around.project_dir),
            Variable::PluginRoot => around.plugin_root,
            Variable::Effort => Some(around.effort),
        }
    }
}

/// A piece of a body that is filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// As it is. Nothing in it is looked for again.
    Text(String),
    /// What this command prints. It has several lines if it was written as a block.
    Command(String),
}

/// A body, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Body<'a> {
    tokens: Vec<Token<'a>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token<'a> {
    Text(&'a str),
    /// All arguments.
    Arguments,
    /// One argument, by its number from 0; how that was written stays if there is no such
    /// argument.
    Argument(usize, &'a str),
    /// One argument, by its name; nothing if there is no such argument.
    Named(usize),
    /// And how it was written.
    Variable(Variable, &'a str),
    /// A command, line by line.
    Command(Vec<Vec<Token<'a>>>),
}

impl<'a> Body<'a> {
    /// Takes a body apart; `names` are those of the arguments, in order.
    pub fn parse(text: &'a str, names: &[String]) -> Self {
        Self {
            tokens: tokens(text, names, Commands::Run),
        }
    }

    /// Fills it in. Arguments that it does not ask for are added at its end.
    ///
    /// # Errors
    /// If arguments could be more than text to a command.
    pub fn fill(&self, around: &Surroundings) -> Result<Vec<Piece>, String> {
        let words = words(around.arguments);
        let mut pieces = Vec::new();
        let mut text = String::new();
        for token in &self.tokens {
            match token {
                Token::Text(own) => text.push_str(own),
                Token::Arguments => text.push_str(around.arguments.trim()),
                Token::Argument(at, written) => {
                    text.push_str(words.get(*at).map_or(written, |word| word));
                }
                Token::Named(at) => text.push_str(words.get(*at).map_or("", |word| word)),
                Token::Variable(variable, written) => {
                    text.push_str(variable.value(around).unwrap_or(written));
                }
                Token::Command(lines) => {
                    pieces.push(Piece::Text(std::mem::take(&mut text)));
                    pieces.push(Piece::Command(filled_command(lines, &words, around)?));
                }
            }
        }
        if !around.arguments.trim().is_empty() && !receives(&self.tokens, words.len()) {
            text.push_str("\n\nARGUMENTS: ");
            text.push_str(around.arguments.trim());
        }
        pieces.push(Piece::Text(text));
        pieces.retain(|piece| *piece != Piece::Text(String::new()));
        Ok(pieces)
    }
}

/// Whether any of so many arguments comes to its place. A number without an argument is text.
fn receives(tokens: &[Token], arguments: usize) -> bool {
    tokens.iter().any(|token| match token {
        Token::Arguments | Token::Named(_) => true,
        Token::Argument(at, _) => *at < arguments,
        Token::Command(lines) => lines.iter().any(|line| receives(line, arguments)),
        Token::Text(_) | Token::Variable(..) => false,
    })
}

/// A command in which everything that is filled in is words to the shell, and nothing else.
fn filled_command(
    lines: &[Vec<Token>],
    words: &[String],
    around: &Surroundings,
) -> Result<String, String> {
    // A place that stays empty today has an argument tomorrow.
    if lines.iter().any(|line| receives(line, usize::MAX)) {
        for line in lines.iter().filter(|line| !is_blank(line)) {
            check_author(line)?;
        }
        let breaks = |c: char| c.is_control() && c != '\t';
        if around.arguments.trim().contains(breaks) {
            return Err("arguments of a command are one line".to_owned());
        }
    }
    let lines = lines.iter().map(|line| filled_line(line, words, around));
    Ok(lines.collect::<Vec<_>>().join("\n").trim().to_owned())
}

fn is_blank(line: &[Token]) -> bool {
    let blank = |token: &Token| matches!(token, Token::Text(own) if own.trim().is_empty());
    line.iter().all(blank)
}

fn filled_line(line: &[Token], words: &[String], around: &Surroundings) -> String {
    let mut text = String::new();
    let mut quote = Quote::None;
    for token in line {
        let given = match token {
            Token::Text(own) => {
                text.push_str(own);
                quote = own.chars().fold(quote, Quote::after);
                continue;
            }
            Token::Arguments if quote == Quote::None => words
                .iter()
                .map(|word| as_word(word))
                .collect::<Vec<_>>()
                .join(" "),
            Token::Arguments => quote.around(around.arguments.trim()),
            Token::Argument(at, written) => match (words.get(*at), quote) {
                (Some(word), _) => quote.around(word),
                // `awk '{print $1}'` means a column.
                (None, Quote::Single) => (*written).to_owned(),
                // As the shell does with a variable that is not set.
                (None, Quote::None | Quote::Double) => String::new(),
            },
            Token::Named(at) => words
                .get(*at)
                .map_or_else(String::new, |word| quote.around(word)),
            Token::Variable(variable, written) => match variable.value(around) {
                Some(value) => quote.around(value),
                None => (*written).to_owned(),
            },
            Token::Command(_) => continue,
        };
        text.push_str(&given);
    }
    text
}

/// What lets a shell read on in another way than it shows, outside of quotes and within double
/// ones.
const SPECIAL: &str = "$\\`<>;&|#()";
const SPECIAL_IN_QUOTES: &str = "$\\`";

/// A command that takes arguments is one plain command of its author's, who says which; in a
/// block that takes arguments every line is.
fn check_author(command: &[Token]) -> Result<(), String> {
    let mut quote = Quote::None;
    for token in command {
        let Token::Text(own) = token else { continue };
        for c in own.chars() {
            let special = match quote {
                Quote::None => SPECIAL.contains(c),
                Quote::Double => SPECIAL_IN_QUOTES.contains(c),
                Quote::Single => false,
            };
            if special {
                return Err(format!("a command that takes arguments cannot use `{c}`"));
            }
            quote = quote.after(c);
        }
    }
    if quote != Quote::None {
        return Err("quotes in a command that takes arguments end in their line".to_owned());
    }
    if !receives(command, usize::MAX) {
        return Ok(());
    }
    let first = match command.first() {
        Some(Token::Text(own)) => own.trim_start().split_once(char::is_whitespace),
        _ => None,
    };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./+".contains(c);
    if first.is_some_and(|(program, _)| program.chars().all(is_plain)) {
        Ok(())
    } else {
        Err("arguments cannot say which program a command runs".to_owned())
    }
}

/// The quotes that are open at a place in a command.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Quote {
    None,
    Single,
    Double,
}

impl Quote {
    fn after(self, c: char) -> Self {
        match (self, c) {
            (Quote::None, '\'') => Quote::Single,
            (Quote::None, '"') => Quote::Double,
            (Quote::Single, '\'') | (Quote::Double, '"') => Quote::None,
            (open, _) => open,
        }
    }

    /// A text at this place, as nothing but text.
    fn around(self, text: &str) -> String {
        match self {
            Quote::None => as_word(text),
            Quote::Single => text.replace('\'', r"'\''"),
            Quote::Double => match as_word(text) {
                plain if plain == text => plain,
                // The quotes are closed for it, and opened again.
                quoted => format!("\"{quoted}\""),
            },
        }
    }
}

/// A text as one word of a shell.
pub(super) fn as_word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:,+@%=".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// Whether commands are looked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Commands {
    Run,
    /// Within a command there are none.
    Not,
}

fn tokens<'a>(text: &'a str, names: &[String], commands: Commands) -> Vec<Token<'a>> {
    let mut tokens = Vec::new();
    // Where the text begins that is not yet in a token.
    let mut from = 0;
    let mut at = 0;
    let between = |from: usize, to: usize| text.get(from..to).unwrap_or_default();
    let special = |at: usize| -> Option<(Token<'a>, usize)> {
        let rest = between(at, text.len());
        let before = between(0, at);
        let runs = commands == Commands::Run;
        let block = || block(before, rest, names).filter(|_| runs);
        let command = || command(before, rest, names).filter(|_| runs);
        // `${baseDir}` is a program's.
        let is_other = before.ends_with('$') && rest.starts_with('{');
        let placeholder = || placeholder(rest, names).filter(|_| !is_other);
        block().or_else(command).or_else(placeholder)
    };
    while let Some(step) = between(at, text.len()).find(['$', '{', '!', '`', '\\']) {
        at += step;
        let behind = between(at + 1, text.len());
        let escaped = between(at, text.len()).starts_with('\\')
            && !between(0, at).ends_with('\\')
            && is_escapable(behind, names, commands);
        if escaped {
            // The text without its backslash. Of what follows only its head is passed over:
            // nothing in the rest can begin the same.
            tokens.push(Token::Text(between(from, at)));
            from = at + 1;
            at = from + 1;
            continue;
        }
        match special(at) {
            Some((token, length)) => {
                tokens.push(Token::Text(between(from, at)));
                tokens.push(token);
                at += length;
                from = at;
            }
            None => at += 1,
        }
    }
    tokens.push(Token::Text(between(from, text.len())));
    tokens.retain(|token| *token != Token::Text(""));
    tokens
}

/// Whether a backslash before this text is there to keep it as it is: before `$` and a digit,
/// `$ARGUMENTS`, the name of an argument, and a command. Before `${CLAUDE_…}` it is a backslash.
fn is_escapable(behind: &str, names: &[String], commands: Commands) -> bool {
    let digit = behind
        .strip_prefix('$')
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    let argument = || {
        let found = placeholder(behind, names);
        found.is_some_and(|(token, _)| !matches!(token, Token::Variable(..)))
    };
    let a_command = || commands == Commands::Run && command("", behind, names).is_some();
    digit || argument() || a_command()
}

/// A command at the start of a text, and how long it is there. `before` is what comes before it:
/// nothing, or something that ends in a blank.
fn command<'a>(before: &str, text: &'a str, names: &[String]) -> Option<(Token<'a>, usize)> {
    let apart = before.is_empty() || before.ends_with(['\n', ' ', '\t']);
    let rest = text.strip_prefix("!`").filter(|_| apart)?;
    let end = rest
        .find(['`', '\n'])
        .filter(|end| rest[*end..].starts_with('`'))?;
    let inner = rest.get(..end).filter(|inner| !inner.trim().is_empty())?;
    let token = Token::Command(vec![tokens(inner, names, Commands::Not)]);
    Some((token, "!`".len() + end + "`".len()))
}

/// A block of commands at the start of a text, and how long it is there: a line of three
/// backticks and `!`, the commands, a line of three backticks.
fn block<'a>(before: &str, text: &'a str, names: &[String]) -> Option<(Token<'a>, usize)> {
    const FENCE: &str = "```";
    let line = before.rsplit('\n').next().unwrap_or_default();
    let rest = text
        .strip_prefix("```!")
        .filter(|_| line.trim().is_empty())?;
    let (opened, inner) = rest.split_once('\n')?;
    if !opened.trim().is_empty() {
        return None;
    }
    let mut lines = Vec::new();
    let mut length = text.len() - inner.len();
    for line in inner.split_inclusive('\n') {
        if line.trim() == FENCE {
            length += line.trim_end().len();
            let some = lines.iter().any(|line: &Vec<Token>| !is_blank(line));
            return some.then_some((Token::Command(lines), length));
        }
        length += line.len();
        let line = line.strip_suffix('\n').unwrap_or(line);
        lines.push(tokens(line, names, Commands::Not));
    }
    None
}

/// A placeholder at the start of a text, and how long it is there.
fn placeholder<'a>(text: &'a str, names: &[String]) -> Option<(Token<'a>, usize)> {
    for (name, variable) in Variable::ALL {
        if let Some(written) = text.get(..name.len()).filter(|start| *start == name) {
            return Some((Token::Variable(variable, written), name.len()));
        }
    }
    let rest = text.strip_prefix('$')?;
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let name = rest.split(|c| !is_part(c)).next().unwrap_or_default();
    let behind = rest.get(name.len()..).unwrap_or_default();
    let length = '$'.len_utf8() + name.len();
    let numbered = |at: usize, length: usize| {
        let written = text.get(..length).unwrap_or_default();
        Some((Token::Argument(at, written), length))
    };
    if name == "ARGUMENTS" {
        let index = behind
            .strip_prefix('[')
            .and_then(|rest| rest.split_once(']'));
        let number = index.and_then(|(number, _)| Some((number.len(), number.parse().ok()?)));
        return match number {
            Some((digits, at)) => numbered(at, length + digits + "[]".len()),
            None => Some((Token::Arguments, length)),
        };
    }
    if let Some(at) = names.iter().position(|known| known == name) {
        return Some((Token::Named(at), length));
    }
    // `$5.20` is money.
    let is_price = behind
        .strip_prefix(['.', ','])
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    let is_index = !name.is_empty() && name.len() <= 2 && name.bytes().all(|c| c.is_ascii_digit());
    let at = name.parse().ok().filter(|_| is_index && !is_price)?;
    numbered(at, length)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Body, Piece, Surroundings};

    proptest! {
        /// Whatever a body looks like, it is filled in or refused; and without arguments and
        /// variables its text is its own.
        #[test]
        fn no_body_is_too_odd(
            body in "[$0-9a{}`!\\\\\n 'é\"]{0,40}",
            arguments in "[$0a`!\n '\"]{0,12}",
        ) {
            let names = ["a".to_owned()];
            let around = Surroundings { arguments: &arguments, ..Surroundings::default() };
            let _ = Body::parse(&body, &names).fill(&around);
            let pieces = Body::parse(&body, &[]).fill(&Surroundings::default());
            let is_text = !body.contains(['\\', '!']);
            if let (true, Ok(pieces)) = (is_text, pieces) {
                let text = Some(body).filter(|body| !body.is_empty());
                let expected: Vec<Piece> = text.map(Piece::Text).into_iter().collect();
                prop_assert_eq!(pieces, expected);
            }
        }
    }
}
