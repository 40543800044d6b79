//! What the toolbox tells `sandbox-exec`, as arguments: paths need not be Unicode.

use std::{ffi::OsString, path::PathBuf};

/// What to run and what it may do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Order {
    /// `None`: the command may do all.
    pub(crate) limits: Option<Limits>,
    /// The program and its arguments.
    pub(crate) command: Vec<OsString>,
}

/// What a command may do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Whether it may use the network.
    pub(crate) network: bool,
    /// What it may read and write, as real paths.
    pub(crate) writable: Vec<PathBuf>,
    /// What it may read though it is within a secret path.
    pub(crate) readable: Vec<PathBuf>,
    /// What it may not read.
    pub(crate) secret: Vec<PathBuf>,
}

/// Which of the processes this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Watches the command and ends what it leaves.
    Supervise,
    /// Restricts itself and becomes the command.
    Restrict,
    /// Restricts itself and tells what came of it.
    Probe,
}

const STAGES: [(&str, Stage); 3] = [
    ("supervise", Stage::Supervise),
    ("restrict", Stage::Restrict),
    ("probe", Stage::Probe),
];

impl Order {
    /// The arguments of a stage, with the verb.
    pub(crate) fn arguments(&self, stage: Stage) -> Vec<OsString> {
        let name = STAGES.iter().find(|(_, known)| *known == stage);
        let mut arguments: Vec<OsString> = vec!["sandbox-exec".into()];
        arguments.extend(name.map(|(name, _)| name.into()));
        if let Some(limits) = &self.limits {
            arguments.push("--limited".into());
            if limits.network {
                arguments.push("--network".into());
            }
            let paths = [
                ("--write", &limits.writable),
                ("--read", &limits.readable),
                ("--secret", &limits.secret),
            ];
            for (flag, paths) in paths {
                for path in paths {
                    arguments.push(flag.into());
                    arguments.push(path.into());
                }
            }
        }
        arguments.push("--".into());
        arguments.extend(self.command.iter().cloned());
        arguments
    }

    /// Reads what follows the verb.
    pub(crate) fn read(arguments: Vec<OsString>) -> Result<(Stage, Self), String> {
        let mut arguments = arguments.into_iter();
        let stage = arguments.next().unwrap_or_default();
        let Some((_, stage)) = STAGES.iter().find(|(name, _)| stage == *name) else {
            return Err("this verb is for asyncagents itself".to_owned());
        };
        let mut limited = false;
        let mut limits = Limits::default();
        while let Some(flag) = arguments.next() {
            let mut path = || {
                let path = arguments.next().map(PathBuf::from);
                path.ok_or_else(|| "a path is missing".to_owned())
            };
            match flag.to_str() {
                Some("--limited") => limited = true,
                Some("--network") => limits.network = true,
                Some("--write") => limits.writable.push(path()?),
                Some("--read") => limits.readable.push(path()?),
                Some("--secret") => limits.secret.push(path()?),
                Some("--") => break,
                // A flag that is not known might have been a restriction.
                _ => return Err(format!("{} is not known", flag.display())),
            }
        }
        let order = Self {
            limits: limited.then_some(limits),
            command: arguments.collect(),
        };
        Ok((*stage, order))
    }
}

#[cfg(test)]
mod tests {
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt};

    use super::{Limits, Order, Stage};

    #[test]
    fn an_order_survives_the_command_line() {
        let odd = OsStr::from_bytes(b"/not\xffunicode --network");
        let limits = Limits {
            network: true,
            writable: vec!["/w".into(), odd.into()],
            readable: vec!["--secret".into()],
            secret: vec!["/s".into()],
        };
        let order = Order {
            limits: Some(limits),
            command: vec!["bash".into(), "-c".into(), "--".into(), "--network".into()],
        };
        let mut arguments = order.arguments(Stage::Restrict);
        assert_eq!(arguments.remove(0), "sandbox-exec");
        assert_eq!(Order::read(arguments), Ok((Stage::Restrict, order)));
    }

    #[test]
    fn an_unknown_flag_is_an_error() {
        let arguments = ["supervise", "--limited", "--more", "--", "true"];
        let read = Order::read(arguments.map(Into::into).to_vec());
        assert_eq!(read, Err("--more is not known".to_owned()));
    }
}
