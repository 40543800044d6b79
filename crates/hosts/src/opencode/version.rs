//! Which versions of OpenCode we know.

use asyncagents_core::port::HostError;

/// The oldest that has everything we use.
pub const OLDEST: (u64, u64) = (1, 18);
/// The first that may be another API altogether.
pub const UNKNOWN: u64 = 3;

/// The generations of OpenCode, which have different APIs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Generation {
    One,
    Two,
}

/// The version in what a program prints of itself, as `1.18.33` or `opencode v2.0.26`.
pub fn in_line(line: &str) -> &str {
    let word = line.split_whitespace().next_back().unwrap_or_default();
    word.trim_start_matches('v')
}

/// Which generation a version is of.
///
/// # Errors
/// With a sentence for people, if it is of none that we know.
pub fn generation(version: &str) -> Result<Generation, HostError> {
    let mut numbers = version.split(['.', '-', '+']).map(str::parse::<u64>);
    let (Some(Ok(major)), Some(Ok(minor))) = (numbers.next(), numbers.next()) else {
        let given = match version {
            "" => String::new(),
            given => format!(" (`{given}`)"),
        };
        return Err(HostError::Refused(format!(
            "this is no OpenCode, or it does not say its version{given}; {}",
            known()
        )));
    };
    if major >= UNKNOWN {
        return Err(HostError::Refused(format!(
            "OpenCode {version} is newer than anything asyncagents knows; {}; update asyncagents",
            known()
        )));
    }
    if (major, minor) < OLDEST {
        return Err(HostError::Refused(format!(
            "OpenCode {version} is too old; {}; update OpenCode",
            known()
        )));
    }
    Ok(if major == 1 {
        Generation::One
    } else {
        Generation::Two
    })
}

/// Whether this is a version of OpenCode 1 that we know how to talk to.
///
/// # Errors
/// With a sentence for people.
pub fn check(version: &str) -> Result<(), HostError> {
    match generation(version)? {
        Generation::One => Ok(()),
        Generation::Two => Err(HostError::Refused(format!(
            "OpenCode {version} is not the OpenCode 1 that it was; launch it anew; {}",
            known()
        ))),
    }
}

fn known() -> String {
    let (major, minor) = OLDEST;
    format!("asyncagents works with {major}.{minor} and later, below {UNKNOWN}.0")
}

#[cfg(test)]
mod tests {
    use super::{Generation, check, generation, in_line};

    #[test]
    fn both_generations_are_known_by_what_their_programs_print() {
        for (line, known) in [
            ("1.18.33", Generation::One),
            ("v1.19.0-beta.1", Generation::One),
            ("2.0.26", Generation::Two),
            ("opencode2 v2.0.0-source.20260819", Generation::Two),
        ] {
            assert_eq!(generation(in_line(line)).ok(), Some(known), "{line}");
        }
        assert!(generation(in_line("")).is_err());
    }

    #[test]
    fn a_version_is_known_or_the_reason_says_what_is() {
        for known in ["1.18.0", "1.18.33", "1.20.1", "1.19.0-beta.1"] {
            assert!(check(known).is_ok(), "{known}");
        }
        for (unknown, why) in [
            ("1.17.9", "too old"),
            ("0.9.1", "too old"),
            ("3.0.0", "newer"),
            ("local", "does not say its version"),
            ("", "this is no OpenCode"),
        ] {
            let error = check(unknown).unwrap_err().to_string();
            assert!(error.contains(why), "{unknown}: {error}");
            assert!(error.contains("1.18"), "{unknown}: {error}");
        }
        assert!(check("2.0.0").is_err());
    }
}
