//! A story is written once and told in each OpenCode; the test's name says in which.

use std::io::{self, Write as _};

use crate::harness::Opencode;

/// Makes a test of each story for each OpenCode that is named, as `story::v2`:
/// `told!(v1, v2: one_story, another)`. With cases it is `story::case::v2`:
/// `told!(v1, v2: story(case => value, …))`. What takes too long for every day is told by name:
/// `told!(ignored "why", v1: story)`.
macro_rules! told {
    ($($opencode:ident),+: $($story:ident),+ $(,)?) => {
        $crate::told::told!(@each ($($opencode),+) $($story),+);
    };
    (ignored $why:literal, $($opencode:ident),+: $story:ident) => {
        mod $story {
            $(#[test]
            #[ignore = $why]
            fn $opencode() {
                let name = concat!(module_path!(), "::", stringify!($opencode));
                $crate::told::tell(name, $crate::told::told!(@opencode $opencode), super::$story);
            })+
        }
    };
    ($($opencode:ident),+: $story:ident($($case:ident => $value:expr),+ $(,)?)) => {
        mod $story {
            use super::*;
            $crate::told::told!(@cases ($($opencode),+) $story $($case => $value),+);
        }
    };
    (@each $opencodes:tt $($story:ident),+) => {
        $(mod $story {
            $crate::told::told!(@tests $opencodes (super::$story));
        })+
    };
    (@cases $opencodes:tt $story:ident $($case:ident => $value:expr),+) => {
        $(mod $case {
            use super::*;
            $crate::told::told!(@tests $opencodes (|opencode| super::super::$story(opencode, $value)));
        })+
    };
    (@tests ($($opencode:ident),+) $tell:tt) => {
        $(#[test]
        fn $opencode() {
            let name = concat!(module_path!(), "::", stringify!($opencode));
            $crate::told::tell(name, $crate::told::told!(@opencode $opencode), $tell);
        })+
    };
    (@opencode v1) => { $crate::harness::Opencode::V1 };
    (@opencode v2) => { $crate::harness::Opencode::V2 };
    (@opencode v2_background) => { $crate::harness::Opencode::V2Background };
}
pub(crate) use told;

/// Tells a story, unless its OpenCode cannot be had here: then its name is printed, past the
/// test's own capture, so that `scripts/test` counts it.
pub(crate) fn tell(name: &str, opencode: Opencode, story: impl FnOnce(Opencode)) {
    if opencode.program().exists() {
        story(opencode);
    } else {
        skip(name, "OpenCode 2");
    }
}

/// Says that a story was not told, because a program cannot be had here.
pub(crate) fn skip(name: &str, program: &str) {
    // On a line of its own, whatever others are writing.
    let line = format!("\nskipped: {name}: there is no {program} here\n");
    // Whoever closed stderr does not want to know.
    let _ = io::stderr().write_all(line.as_bytes());
}
