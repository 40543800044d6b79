//! Which versions of OpenCode we know.

use asyncagents_core::port::HostError;

/// The oldest that has everything we use.
pub const OLDEST: (u64, u64) = (1, 18);
/// The first that may be another API altogether.
pub const UNKNOWN: u64 = 2;

/// Whether we know how to talk to this version.
///
/// # Errors
/// With a sentence for people.
pub fn check(version: &str) -> Result<(), HostError> {
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
    Ok(())
}

fn known() -> String {
    let (major, minor) = OLDEST;
    format!("asyncagents works with {major}.{minor} and later, below {UNKNOWN}.0")
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn a_version_is_known_or_the_reason_says_what_is() {
        for known in ["1.18.0", "1.18.33", "1.20.1", "1.19.0-beta.1"] {
            assert!(check(known).is_ok(), "{known}");
        }
        for (unknown, why) in [
            ("1.17.9", "too old"),
            ("0.9.1", "too old"),
            ("2.0.0", "newer"),
            ("local", "does not say its version"),
            ("", "this is no OpenCode"),
        ] {
            let error = check(unknown).unwrap_err().to_string();
            assert!(error.contains(why), "{unknown}: {error}");
            assert!(error.contains("1.18"), "{unknown}: {error}");
        }
    }
}
