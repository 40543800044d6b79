//! The body of a skill when it is invoked: what is filled in, and which commands are run.

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
}

/// A piece of a body that is filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// As it is. Nothing in it is looked for again.
    Text(String),
    /// What this command prints.
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
    /// One argument, from 0.
    Argument(usize),
    SkillDir,
    Session,
    ProjectDir,
    Command(Vec<Token<'a>>),
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
                Token::Argument(at) => text.push_str(words.get(*at).map_or("", String::as_str)),
                Token::SkillDir => text.push_str(around.skill_dir),
                Token::Session => text.push_str(around.session),
                Token::ProjectDir => text.push_str(around.project_dir),
                Token::Command(command) => {
                    pieces.push(Piece::Text(std::mem::take(&mut text)));
                    pieces.push(Piece::Command(filled_command(command, &words, around)?));
                }
            }
        }
        if !around.arguments.trim().is_empty() && !asks(&self.tokens) {
            text.push_str("\n\nARGUMENTS: ");
            text.push_str(around.arguments.trim());
        }
        pieces.push(Piece::Text(text));
        pieces.retain(|piece| *piece != Piece::Text(String::new()));
        Ok(pieces)
    }
}

/// Whether any argument is asked for.
fn asks(tokens: &[Token]) -> bool {
    tokens.iter().any(|token| match token {
        Token::Arguments | Token::Argument(_) => true,
        Token::Command(command) => asks(command),
        Token::Text(_) | Token::SkillDir | Token::Session | Token::ProjectDir => false,
    })
}

/// A command in which everything that is filled in is words to the shell, and nothing else.
fn filled_command(
    command: &[Token],
    words: &[String],
    around: &Surroundings,
) -> Result<String, String> {
    if asks(command) {
        check_author(command)?;
        let breaks = |c: char| c.is_control() && c != '\t';
        if around.arguments.trim().contains(breaks) {
            return Err("arguments of a command are one line".to_owned());
        }
    }
    let mut text = String::new();
    let mut quote = Quote::None;
    for token in command {
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
            Token::Argument(at) => quote.around(words.get(*at).map_or("", |word| word)),
            Token::SkillDir => quote.around(around.skill_dir),
            Token::Session => quote.around(around.session),
            Token::ProjectDir => quote.around(around.project_dir),
            Token::Command(_) => continue,
        };
        text.push_str(&given);
    }
    Ok(text.trim().to_owned())
}

/// What lets a shell read on in another way than it shows, outside of quotes and within double
/// ones.
const SPECIAL: &str = "$\\`<>;&|#()";
const SPECIAL_IN_QUOTES: &str = "$\\`";

/// A command that takes arguments is one plain command of its author's, who says which.
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
    let first = match command.first() {
        Some(Token::Text(own)) => own.trim_start().split_once(char::is_whitespace),
        _ => None,
    };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./+".contains(c);
    match first.is_some_and(|(program, _)| program.chars().all(is_plain)) {
        true => Ok(()),
        false => Err("arguments cannot say which program a command runs".to_owned()),
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
fn as_word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:,+@%=".contains(c);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

/// Arguments as words: at blanks, but not within quotes.
fn words(arguments: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in arguments.chars() {
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => word.get_or_insert_default().push(c),
            None if c == '"' || c == '\'' => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            None if c.is_whitespace() => words.extend(word.take()),
            None => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
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
        let before = between(0, at).chars().next_back();
        let apart = before.is_none_or(|c| matches!(c, '\n' | ' ' | '\t' | '\\'));
        match commands == Commands::Run && apart {
            true => command(rest, names).or_else(|| placeholder(rest, names)),
            false => placeholder(rest, names),
        }
    };
    while let Some(step) = between(at, text.len()).find(['$', '!', '\\']) {
        at += step;
        let escaped = between(at, text.len()).starts_with('\\');
        match special(at + usize::from(escaped)) {
            Some((_, length)) if escaped => {
                // The text without its backslash. Of a command only its head is passed over:
                // nothing in the rest can begin one.
                tokens.push(Token::Text(between(from, at)));
                from = at + 1;
                let is_command = between(from, text.len()).starts_with('!');
                at = from + if is_command { "!`".len() } else { length };
            }
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

/// A command at the start of a text, and how long it is there.
fn command<'a>(text: &'a str, names: &[String]) -> Option<(Token<'a>, usize)> {
    let rest = text.strip_prefix("!`")?;
    let end = rest
        .find(['`', '\n'])
        .filter(|end| rest[*end..].starts_with('`'))?;
    let inner = rest.get(..end).filter(|inner| !inner.trim().is_empty())?;
    let token = Token::Command(tokens(inner, names, Commands::Not));
    Some((token, "!`".len() + end + "`".len()))
}

/// A placeholder at the start of a text, and how long it is there.
fn placeholder<'a>(text: &str, names: &[String]) -> Option<(Token<'a>, usize)> {
    const BRACED: [(&str, Token<'static>); 3] = [
        ("${CLAUDE_SKILL_DIR}", Token::SkillDir),
        ("${CLAUDE_SESSION_ID}", Token::Session),
        ("${CLAUDE_PROJECT_DIR}", Token::ProjectDir),
    ];
    for (name, token) in BRACED {
        if text.starts_with(name) {
            return Some((token, name.len()));
        }
    }
    let rest = text.strip_prefix('$')?;
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let name = rest.split(|c| !is_part(c)).next().unwrap_or_default();
    let behind = rest.get(name.len()..).unwrap_or_default();
    let length = '$'.len_utf8() + name.len();
    if name == "ARGUMENTS" {
        let index = behind
            .strip_prefix('[')
            .and_then(|rest| rest.split_once(']'));
        let number = index.and_then(|(number, _)| Some((number.len(), number.parse().ok()?)));
        return Some(match number {
            Some((digits, at)) => (Token::Argument(at), length + digits + "[]".len()),
            None => (Token::Arguments, length),
        });
    }
    if let Some(at) = names.iter().position(|known| known == name) {
        return Some((Token::Argument(at), length));
    }
    // `$5.20` is money.
    let is_price = behind
        .strip_prefix(['.', ','])
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    let is_index = !name.is_empty() && name.len() <= 2 && name.bytes().all(|c| c.is_ascii_digit());
    let at = name.parse().ok().filter(|_| is_index && !is_price)?;
    Some((Token::Argument(at), length))
}
