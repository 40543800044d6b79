//! How much a command may use, with everything it starts.

use std::{fmt, str::FromStr};

/// How much a command may use, with everything it starts. `None` is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resources {
    /// How many processes there may be at once. Each may have 16 threads on average.
    pub processes: Option<u64>,
    /// How much memory all processes may have together.
    pub memory: Option<MemoryLimit>,
    /// How large a file may become.
    pub file_size: Option<Bytes>,
}

/// How much memory a command may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryLimit {
    Bytes(Bytes),
    /// A share of the machine's memory, in percent.
    Percent(u8),
}

/// A number of bytes, as people write it: `4GB`, `512MiB`, `100000`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bytes(pub u64);

const UNITS: [(&str, u64); 8] = [
    ("TB", 1_000_000_000_000),
    ("TiB", 1 << 40),
    ("GB", 1_000_000_000),
    ("GiB", 1 << 30),
    ("MB", 1_000_000),
    ("MiB", 1 << 20),
    ("kB", 1_000),
    ("KiB", 1 << 10),
];

impl Default for Resources {
    /// Wide enough for builds with many compilers, narrow enough to keep the machine usable.
    fn default() -> Self {
        Self {
            processes: Some(1_000),
            memory: Some(MemoryLimit::Percent(75)),
            file_size: Some(Bytes(10_000_000_000)),
        }
    }
}

impl Resources {
    /// All that the machine gives.
    pub const UNLIMITED: Self = Self {
        processes: None,
        memory: None,
        file_size: None,
    };
}

impl MemoryLimit {
    /// In bytes, on a machine with this much memory.
    pub(crate) fn of(self, machine: Option<Bytes>) -> Option<Bytes> {
        match self {
            MemoryLimit::Bytes(bytes) => Some(bytes),
            MemoryLimit::Percent(share) => {
                machine.map(|Bytes(all)| Bytes(all / 100 * u64::from(share)))
            }
        }
    }
}

impl fmt::Display for MemoryLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MemoryLimit::Bytes(bytes) => bytes.fmt(f),
            MemoryLimit::Percent(share) => write!(f, "{share}%"),
        }
    }
}

impl FromStr for MemoryLimit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let allowed = || "a size like 4GB, or a share of the memory like 75%".to_owned();
        match text.trim().strip_suffix('%') {
            Some(share) => {
                let share = share.trim().parse().ok();
                let share = share.filter(|share| (1..=100).contains(share));
                share.map(MemoryLimit::Percent).ok_or_else(allowed)
            }
            None => text.parse().map(MemoryLimit::Bytes).map_err(|_| allowed()),
        }
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = |(_, unit): &&(&str, u64)| self.0 >= *unit && self.0.is_multiple_of(*unit);
        match UNITS.iter().find(whole) {
            Some((name, unit)) => write!(f, "{}{name}", self.0 / unit),
            None => write!(f, "{}", self.0),
        }
    }
}

impl FromStr for Bytes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let allowed = || "a size like 500MB or 10GB".to_owned();
        let text = text.trim();
        let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
        let name = text[digits.len()..].trim();
        let unit = match name {
            "" | "B" => Some(1),
            _ => {
                let named = |(unit, _): &&(&str, u64)| unit.eq_ignore_ascii_case(name);
                UNITS.iter().find(named).map(|(_, unit)| *unit)
            }
        };
        let number: Option<u64> = digits.replace('_', "").parse().ok();
        let bytes = unit.zip(number).and_then(|(unit, n)| n.checked_mul(unit));
        match bytes {
            Some(bytes @ 1..) => Ok(Bytes(bytes)),
            Some(0) | None => Err(allowed()),
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::{Bytes, MemoryLimit};

    #[rstest]
    #[case("10GB", Some(10_000_000_000), "10GB")]
    #[case("10 gb", Some(10_000_000_000), "10GB")]
    #[case("4GiB", Some(4 << 30), "4GiB")]
    #[case("1500MB", Some(1_500_000_000), "1500MB")]
    #[case("2_000", Some(2_000), "2kB")]
    #[case("17", Some(17), "17")]
    #[case("17B", Some(17), "17")]
    #[case("0", None, "")]
    #[case("", None, "")]
    #[case("GB", None, "")]
    #[case("-1", None, "")]
    #[case("1.5GB", None, "")]
    #[case("4 GB of it", None, "")]
    #[case("99999999TB", None, "")]
    fn sizes(#[case] text: &str, #[case] bytes: Option<u64>, #[case] shown: &str) {
        let parsed: Option<Bytes> = text.parse().ok();
        assert_eq!(parsed, bytes.map(Bytes));
        assert_eq!(parsed.map_or(String::new(), |b| b.to_string()), shown);
    }

    #[rstest]
    #[case("75%", Some(MemoryLimit::Percent(75)))]
    #[case("1GB", Some(MemoryLimit::Bytes(Bytes(1_000_000_000))))]
    #[case("0%", None)]
    #[case("101%", None)]
    #[case("none", None)]
    fn memory(#[case] text: &str, #[case] limit: Option<MemoryLimit>) {
        let parsed: Option<MemoryLimit> = text.parse().ok();
        assert_eq!(parsed, limit);
        assert!(parsed.is_none_or(|limit| limit.to_string() == text));
    }

    #[test]
    fn a_share_needs_a_machine_that_tells_its_memory() {
        let share = MemoryLimit::Percent(75);
        assert_eq!(share.of(Some(Bytes(1_000))), Some(Bytes(750)));
        assert_eq!(share.of(None), None);
    }
}
