//! Options that make a program do more than it is known for: write a file, run another program. A rule
//! with a wildcard (`git diff *`) speaks of the program, not of these.

use super::{
    glob::fits,
    shell_words::{Word, words},
};

/// A program and what makes it more than it looks.
struct Program {
    /// What it is called, by all its names or those of others that have the same options.
    names: &'static str,
    /// Only with this word as its first operand.
    command: Option<&'static str>,
    /// Only before its first operand.
    before_operands: bool,
    /// As people write them: `--long`, which may be abbreviated; `-x`, also among others (`-ax`);
    /// `-long` for programs that have such; `word`, as the first operand; `a*`, any operand of that
    /// form. Separated by blanks.
    options: &'static str,
}

const fn program(names: &'static str, options: &'static str) -> Program {
    Program {
        names,
        command: None,
        before_operands: false,
        options,
    }
}

impl Program {
    const fn with_command(mut self, command: &'static str) -> Self {
        self.command = Some(command);
        self
    }

    const fn before_operands(mut self) -> Self {
        self.before_operands = true;
        self
    }
}

/// Neither complete nor meant to be: what must not happen is for the sandbox to prevent.
const PROGRAMS: &[Program] = &[
    // Version control.
    program(
        "git",
        "-c -C --config-env --exec-path --git-dir --work-tree",
    )
    .before_operands(),
    program(
        "git",
        "--output --output-directory -O --open-files-in-pager --upload-pack --receive-pack --exec \
         --extcmd --ext-diff --template ext::* bisect config difftool filter-branch mergetool \
         send-email",
    ),
    program("git", "-o").with_command("archive"),
    program("git", "-u").with_command("clone"),
    program("git", "-o").with_command("format-patch"),
    program("git", "--export-marks").with_command("fast-export"),
    program("git", "--in-place").with_command("interpret-trailers"),
    program("git", "-x").with_command("rebase"),
    program("git", "foreach").with_command("submodule"),
    program("hg", "--config --cwd -R --repository"),
    // Searching.
    program(
        "find",
        "-delete -exec -execdir -fls -fprint -fprint0 -fprintf -ok -okdir",
    ),
    program("fd fdfind", "-x --exec -X --exec-batch"),
    program("rg", "--pre --hostname-bin"),
    program("ag", "--pager"),
    program("ack", "--pager --ackrc"),
    program("tree", "-o -R"),
    // Text.
    program(
        "awk gawk mawk",
        "-f --file -i --include -l --load -E --exec",
    ),
    program("sed gsed", "-i --in-place -f --file"),
    program("perl", "-e -E -i"),
    program("sort", "-o --output --compress-program"),
    program("iconv shuf strace xmllint", "-o --output"),
    program("yq", "-i --inplace -s --split-exp"),
    program("less", "-o -O -k --log-file --LOG-FILE --lesskey-file +*"),
    program("man", "-P --pager -H --html -C --config-file"),
    program("file", "-C --compile"),
    program("vim vi nvim", "-c --cmd -S -s -u -w -W +*"),
    // Archives and transfers.
    program(
        "tar",
        "-I --use-compress-program -F --info-script --new-volume-script --to-command \
         --checkpoint-action --rsh-command --rmt-command --index-file",
    ),
    program("zip", "-T --unzip-command"),
    program(
        "curl",
        "-o --output --output-dir -O --remote-name --remote-name-all -K --config -c --cookie-jar \
         -D --dump-header --etag-save --hsts --libcurl --stderr --trace --trace-ascii --alt-svc",
    ),
    program(
        "wget",
        "-O --output-document -o --output-file -a --append-output -P --directory-prefix -e \
         --execute --config --save-cookies --use-askpass",
    ),
    program("rsync", "-e --rsh --rsync-path --log-file"),
    program("ssh", "-o -F -E"),
    program("scp", "-o -F -S"),
    // Building and testing.
    program("cargo", "--config -Z --manifest-path --target-dir --fix"),
    program("cargo", "-C").before_operands(),
    program(
        "go",
        "-C -blockprofile -coverprofile -cpuprofile -exec -memprofile -mutexprofile -o -outputdir \
         -overlay -pkgdir -toolexec -trace -vettool",
    ),
    program(
        "make gmake",
        "-C --directory -f --file --makefile -I --include-dir --eval *=*",
    ),
    program("ninja", "-C -f"),
    program(
        "npm pnpm yarn",
        "-C --cwd --dir --globalconfig --node-options --prefix --script-shell \
         --userconfig",
    ),
    program(
        "pytest",
        "-c --config-file -o --override-ini -p --basetemp --confcutdir --junit-xml --junitxml \
         --log-file --pdbcls --rootdir",
    ),
    program(
        "eslint",
        "-c --config --fix -f --format -o --output-file --plugin --rulesdir",
    ),
    program("prettier", "-w --write --config --plugin"),
    program("ruff", "--fix --config -o --output-file"),
    // Machines and services.
    program("kubectl", "--kubeconfig --cache-dir"),
    program("helm", "--kubeconfig --post-renderer --output-dir"),
    program("terraform", "-chdir -out -state-out"),
    program("openssl", "-out -engine -provider-path"),
    program("tcpdump", "-w -z"),
    program("env", "-S --split-string"),
    program("compgen", "-C"),
    program("gcc g++", "-wrapper"),
    program("date", "-s --set"),
];

/// Programs that run another one.
const RUNNERS: &str = "command doas env exec ionice ltrace nice nohup parallel prlimit setarch \
    setsid stdbuf strace sudo time unshare watch xargs";

/// The same, with one operand before the other's name.
const RUNNERS_WITH_OPERAND: &str = "chroot chrt flock taskset timeout";

/// Whether a word is one of those that are separated by blanks.
fn is_in(words: &str, word: &str) -> bool {
    words.split(' ').any(|known| known == word)
}

/// Whether a command uses such an option that a pattern with a wildcard does not name before it.
pub(super) fn are_used_unnamed(pattern: &str, command: &str) -> bool {
    let Some((named, _)) = pattern.split_once('*') else {
        // The whole command is named.
        return false;
    };
    let Some(used) = words(command) else {
        return true;
    };
    let named = words(named).unwrap_or_default();
    let named = risky(&named);
    risky(&used).iter().any(|option| !named.contains(option))
}

/// What a command uses of the lists above.
fn risky(words: &[Word]) -> Vec<&str> {
    let mut found = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let name = word.text.rsplit('/').next().unwrap_or_default();
        let (before, arguments) = (words.get(..at), words.get(at + 1..));
        let (before, arguments) = (before.unwrap_or_default(), arguments.unwrap_or_default());
        for program in PROGRAMS.iter().filter(|program| is_in(program.names, name)) {
            found.extend(program.used(&with_dash(name, arguments)));
        }
        if matches!(name, "sed" | "gsed") && !sed_only_prints(arguments) {
            found.push("a script of sed");
        }
        let operands = || operands(arguments).filter(|word| !is_assignment(word));
        let runs = is_in(RUNNERS, name) && operands().count() > 0
            || is_in(RUNNERS_WITH_OPERAND, name) && operands().count() > 1;
        if runs && before.iter().all(may_stand_before_a_program) {
            found.push(name);
        }
    }
    found
}

/// The arguments of a program, with the dash that `tar xf` leaves out.
fn with_dash(program: &str, arguments: &[Word]) -> Vec<Word> {
    let mut arguments = arguments.to_vec();
    if let Some(first) = arguments.first_mut().filter(|_| program == "tar")
        && !is_option(first)
    {
        first.text.insert(0, '-');
    }
    arguments
}

impl Program {
    /// Programs that have `-long` options do not join letters.
    fn joins_letters(&self) -> bool {
        let is_long = |option: &str| option.starts_with('-') && !option.starts_with("--");
        !self
            .options
            .split(' ')
            .any(|option| is_long(option) && option.len() > 2)
    }

    fn used(&self, arguments: &[Word]) -> Vec<&'static str> {
        let first = operands(arguments).next();
        if self
            .command
            .is_some_and(|command| first.is_none_or(|first| first.text != command))
        {
            return Vec::new();
        }
        let mut places = 0..arguments.len();
        let until = places.find(|at| self.before_operands && is_operand(arguments, *at));
        let looked_at = &arguments[..until.unwrap_or(arguments.len())];
        let is_used = |option: &&str| {
            let mut looked_at = looked_at.iter();
            looked_at.any(|word| is_use(option, word, first, self.joins_letters()))
        };
        self.options.split(' ').filter(is_used).collect()
    }
}

/// Whether a word is a use of an option. `joined`: letters may be written together.
fn is_use(option: &str, word: &Word, first: Option<&Word>, joined: bool) -> bool {
    let text = word.text.as_str();
    let (name, _) = text.split_once('=').unwrap_or((text, ""));
    if !option.starts_with('-') {
        return if option.contains('*') {
            !is_option(word) && fits(option, text)
        } else {
            first == Some(word) && text == option
        };
    }
    if word.is_glob && text.starts_with(['*', '?', '[', '-']) {
        // A file may have the name of an option, with a value behind it.
        return option.len() == 2 || option.starts_with("--") || fits(text, option);
    }
    if option.starts_with("--") {
        name.len() > 2 && name.starts_with("--") && option.starts_with(name)
    } else if option.len() == 2 && joined {
        let is_short = text.starts_with('-') && !text.starts_with("--");
        is_short && letters(text).any(|letter| option.ends_with(letter))
    } else {
        // Some programs take two dashes as well.
        name == option || name.strip_prefix('-') == Some(option)
    }
}

/// The letters of options that are written together, with what may be a value behind the last.
fn letters(text: &str) -> impl Iterator<Item = char> {
    text.chars()
        .skip(1)
        .take_while(|c| c.is_ascii_alphanumeric())
}

fn is_option(word: &Word) -> bool {
    word.text.starts_with('-')
}

/// Options whose value is the next word, and that may come before a command: what stands behind
/// them is no operand.
const VALUED: &str =
    "-c -C --attr-source --config-env --git-dir --namespace --super-prefix --work-tree";

/// What is no option, nor the value of one.
fn operands(words: &[Word]) -> impl Iterator<Item = &Word> {
    let at = (0..words.len()).filter(|at| is_operand(words, *at));
    at.filter_map(|at| words.get(at))
}

fn is_operand(words: &[Word], at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|before| words.get(before));
    let is_value = before.is_some_and(|word| is_in(VALUED, &word.text));
    words.get(at).is_some_and(|word| !is_option(word)) && !is_value
}

fn is_assignment(word: &Word) -> bool {
    word.text.contains('=')
}

fn may_stand_before_a_program(word: &Word) -> bool {
    is_in(RUNNERS, &word.text)
        || is_in(RUNNERS_WITH_OPERAND, &word.text)
        || is_option(word)
        || is_assignment(word)
        || word.text.starts_with(|c: char| c.is_ascii_digit())
}

/// Whether a script of sed only prints, deletes and replaces: `10,20p`, `/a/d`, `s/a/b/g`. Others may
/// write files and run commands.
fn sed_only_prints(arguments: &[Word]) -> bool {
    let has_value = |word: &Word| word.text.starts_with("--l") || word.text.starts_with("-l");
    if arguments.iter().any(has_value) {
        // How long lines are: its value looks like a script.
        return false;
    }
    let mut scripts: Vec<&str> = Vec::new();
    let mut words = arguments.iter().map(|word| word.text.as_str());
    let mut operands = operands(arguments).map(|word| word.text.as_str());
    while let Some(word) = words.next() {
        let long = word.strip_prefix("--e").map(|rest| rest.split_once('='));
        let short = word.strip_prefix('-').filter(|word| !word.starts_with('-'));
        match (long, short.and_then(|word| word.split_once('e'))) {
            (Some(Some((_, script))), _) => scripts.push(script),
            (Some(None), _) | (None, Some((_, ""))) => scripts.extend(words.next()),
            (None, Some((_, script))) => scripts.push(script),
            (None, None) => {}
        }
    }
    if scripts.is_empty() {
        scripts.extend(operands.next());
    }
    scripts.into_iter().all(only_prints)
}

fn only_prints(script: &str) -> bool {
    let mut rest = script.trim();
    // Which lines.
    loop {
        let plain = rest.trim_start_matches(|c: char| {
            c.is_ascii_digit() || matches!(c, ',' | '+' | '~' | '!' | ' ')
        });
        rest = match plain
            .strip_prefix('/')
            .map(|pattern| after_unescaped(pattern, '/'))
        {
            Some(Some(behind)) => behind.strip_prefix('I').unwrap_or(behind),
            Some(None) => return false,
            None => {
                rest = plain;
                break;
            }
        };
    }
    let mut characters = rest.chars();
    match (characters.next(), characters.as_str()) {
        (None, _) | (Some('p' | 'd' | 'q' | '='), "") => true,
        (Some('s'), replacing) => {
            let Some(delimiter) = replacing.chars().next().filter(char::is_ascii) else {
                return false;
            };
            let behind = replacing.strip_prefix(delimiter);
            let behind = behind.and_then(|pattern| after_unescaped(pattern, delimiter));
            let flags = behind.and_then(|replacement| after_unescaped(replacement, delimiter));
            flags.is_some_and(|flags| {
                flags
                    .chars()
                    .all(|c| c.is_ascii_digit() || matches!(c, 'g' | 'p' | 'i' | 'I'))
            })
        }
        _ => false,
    }
}

/// What is behind the next such character that has no backslash before it.
fn after_unescaped(text: &str, delimiter: char) -> Option<&str> {
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        match c {
            '\\' => drop(characters.next()),
            c if c == delimiter => return Some(characters.as_str()),
            _ => {}
        }
    }
    None
}
