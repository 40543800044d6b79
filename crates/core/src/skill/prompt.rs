//! What a sub-agent that runs a skill is told. Nothing of the caller's conversation is in it.

use std::fmt::Write;

/// The part of a system prompt that is about the skill. `tools` are those that the sub-agent
/// has, each with what it is for.
pub fn isolated<'a>(
    skill: &str,
    instructions: &str,
    tools: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> String {
    let mut text = format!(
        "You are a sub-agent executing the '{skill}' skill.\n\n\
         SKILL INSTRUCTIONS:\n{instructions}\n\n\
         AVAILABLE TOOLS:\n"
    );
    let mut any = false;
    for (name, about) in tools {
        any = true;
        // Writing to a string cannot fail.
        let _ = match about {
            "" => writeln!(text, "- {name}"),
            about => writeln!(text, "- {name}: {about}"),
        };
    }
    if !any {
        text.push_str("(none)\n");
    }
    text.push_str("\nExecute the task autonomously and report results when complete.");
    text
}
