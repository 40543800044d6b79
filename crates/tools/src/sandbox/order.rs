//! The command line of `sandbox-exec`, as arguments: paths need not be Unicode.

use std::{ffi::OsString, path::PathBuf, str::FromStr};

use crate::resources::Resources;

/// What a command may do, whichever it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Order {
    /// `None`: the command may do all.
    pub(crate) limits: Option<Limits>,
    /// How much it may use.
    pub(crate) resources: Resources,
    /// The control group that the guard has made for it.
    pub(crate) group: Option<PathBuf>,
    /// What its input and its output are.
    pub(crate) streams: Streams,
}

/// What the input and the output of a command are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Streams {
    /// No input, and one output for all.
    #[default]
    Output,
    /// Three pipes that come with the command, for a program that is talked to for hours.
    Pipes,
}

/// What a command may do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Limits {
    /// What it may use of the network.
    pub(crate) network: Network,
    /// What it may read and write, as real paths.
    pub(crate) writable: Vec<PathBuf>,
    /// What it may read though it is within a secret path.
    pub(crate) readable: Vec<PathBuf>,
    /// What it may not read.
    pub(crate) secret: Vec<PathBuf>,
}

/// What a command may use of the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Network {
    #[default]
    Nothing,
    /// Connections by TCP to one port.
    Port {
        connect: u16,
        /// A port that it may listen on.
        listen: Option<u16>,
    },
    All,
}

impl Network {
    /// For a setting that knows only two.
    pub(crate) fn all_if(allowed: bool) -> Self {
        if allowed { Self::All } else { Self::Nothing }
    }
}

/// Which of the processes this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Starts the supervisor, and ends what is left if the supervisor is killed.
    Guard,
    /// Watches the command and ends what it leaves.
    Supervise,
    /// Limits and restricts itself and becomes the command.
    Become,
    /// Restricts itself and reports what is enforced.
    Probe,
}

const STAGES: [(&str, Stage); 4] = [
    ("guard", Stage::Guard),
    ("supervise", Stage::Supervise),
    ("become", Stage::Become),
    ("probe", Stage::Probe),
];

impl Default for Order {
    /// No limits.
    fn default() -> Self {
        Self {
            limits: None,
            resources: Resources::UNLIMITED,
            group: None,
            streams: Streams::default(),
        }
    }
}

impl Order {
    /// The arguments of a stage, with the verb.
    pub(crate) fn arguments(&self, stage: Stage) -> Vec<OsString> {
        let name = STAGES.iter().find(|(_, known)| *known == stage);
        let mut arguments: Vec<OsString> = vec!["sandbox-exec".into()];
        arguments.extend(name.map(|(name, _)| name.into()));
        if let Some(limits) = &self.limits {
            arguments.push("--limited".into());
            match limits.network {
                Network::Nothing => {}
                Network::Port { connect, listen } => {
                    arguments.extend(["--port".into(), connect.to_string().into()]);
                    if let Some(listen) = listen {
                        arguments.extend(["--listen".into(), listen.to_string().into()]);
                    }
                }
                Network::All => arguments.push("--network".into()),
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
        match self.streams {
            Streams::Output => {}
            Streams::Pipes => arguments.push("--pipes".into()),
        }
        let Resources {
            processes,
            memory,
            file_size,
        } = self.resources;
        let values = [
            (
                "--processes",
                processes.map(|count| count.to_string().into()),
            ),
            ("--memory", memory.map(|limit| limit.to_string().into())),
            ("--file-size", file_size.map(|size| size.to_string().into())),
            ("--group", self.group.clone().map(OsString::from)),
        ];
        for (flag, value) in values {
            if let Some(value) = value {
                arguments.push(flag.into());
                arguments.push(value);
            }
        }
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
        let mut order = Self::default();
        while let Some(flag) = arguments.next() {
            let mut value = || {
                let value = arguments.next();
                value.ok_or_else(|| format!("{} has no value", flag.display()))
            };
            let mut path = || value().map(PathBuf::from);
            match flag.to_str() {
                Some("--limited") => limited = true,
                Some("--network") => limits.network = Network::All,
                Some("--port") => {
                    let (connect, listen) = (parse(&value()?)?, None);
                    limits.network = Network::Port { connect, listen };
                }
                Some("--listen") => match &mut limits.network {
                    Network::Port { listen, .. } => *listen = Some(parse(&value()?)?),
                    _ => return Err("--listen comes after --port".to_owned()),
                },
                Some("--pipes") => order.streams = Streams::Pipes,
                Some("--write") => limits.writable.push(path()?),
                Some("--read") => limits.readable.push(path()?),
                Some("--secret") => limits.secret.push(path()?),
                Some("--group") => order.group = Some(path()?),
                Some("--processes") => order.resources.processes = Some(parse(&value()?)?),
                Some("--memory") => order.resources.memory = Some(parse(&value()?)?),
                Some("--file-size") => order.resources.file_size = Some(parse(&value()?)?),
                // A flag that is not known might have been a restriction.
                _ => return Err(format!("{} is not known", flag.display())),
            }
        }
        order.limits = limited.then_some(limits);
        Ok((*stage, order))
    }
}

/// A limit that cannot be read must not become none.
fn parse<T: FromStr>(value: &OsString) -> Result<T, String> {
    let parsed = value.to_str().and_then(|value| value.parse().ok());
    parsed.ok_or_else(|| format!("{} is no limit", value.display()))
}

#[cfg(test)]
mod tests {
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt};

    use super::{Limits, Network, Order, Stage, Streams};
    use crate::resources::{Bytes, MemoryLimit, Resources};

    #[test]
    fn an_order_survives_the_command_line() {
        let odd = OsStr::from_bytes(b"/not\xffunicode --network");
        let limits = Limits {
            network: Network::All,
            writable: vec!["/w".into(), odd.into()],
            readable: vec!["--secret".into()],
            secret: vec!["/s".into()],
        };
        let order = Order {
            limits: Some(limits.clone()),
            resources: Resources {
                processes: Some(7),
                memory: Some(MemoryLimit::Percent(75)),
                file_size: Some(Bytes(1_234_567)),
            },
            group: Some(odd.into()),
            streams: Streams::Output,
        };
        let of_agent = Order {
            limits: Some(Limits {
                network: Network::Port {
                    connect: 54_321,
                    listen: Some(4_096),
                },
                ..limits
            }),
            streams: Streams::Pipes,
            ..order.clone()
        };
        for order in [order, of_agent] {
            let mut arguments = order.arguments(Stage::Become);
            assert_eq!(arguments.remove(0), "sandbox-exec");
            assert_eq!(Order::read(arguments), Ok((Stage::Become, order)));
        }
    }

    #[test]
    fn an_unknown_flag_is_an_error() {
        let arguments = ["supervise", "--limited", "--more"];
        let read = Order::read(arguments.map(Into::into).to_vec());
        assert_eq!(read, Err("--more is not known".to_owned()));
    }

    #[test]
    fn a_limit_that_cannot_be_read_is_an_error() {
        for (value, why) in [
            (Some("much"), "much is no limit"),
            (None, "--memory has no value"),
        ] {
            let mut arguments = vec!["become".into(), "--memory".into()];
            arguments.extend(value.map(Into::into));
            assert_eq!(Order::read(arguments), Err(why.to_owned()));
        }
    }
}
