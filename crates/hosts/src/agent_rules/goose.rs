//! goose.

use super::{AgentPlace, modes, project_files::settings_of_project};
use crate::acp::AcpSettings;

/// It asks nobody about what its own sub-agents do.
pub(super) const REFUSED: &[&str] = &["mcp__summon__delegate"];

pub(super) fn acp_settings() -> AcpSettings {
    // It has no mode in which it reads and does nothing else.
    modes("approve", None)
}

pub(super) fn variables() -> Vec<(&'static str, String)> {
    vec![("GOOSE_MODE", "approve".to_owned())]
}

/// Hooks and servers of plugins run unasked.
pub(super) fn check_project(place: AgentPlace<'_>) -> Result<(), String> {
    let found = settings_of_project(".agents/plugins", place.project, place.home);
    found.map_or(Ok(()), |file| {
        Err(format!(
            "{} would decide what goose runs; remove the folder, or use another host",
            file.display()
        ))
    })
}

#[cfg(test)]
mod tests {
    use std::{fs, io};

    use super::{super::place, *};

    #[test]
    fn plugins_of_a_project_do_not_run() -> io::Result<()> {
        let home = tempfile::tempdir()?;
        let project = home.path().join("project");
        fs::create_dir_all(project.join(".git"))?;
        fs::create_dir_all(project.join("src"))?;
        // What is in the home folder is the user's own.
        fs::create_dir_all(home.path().join(".agents/plugins"))?;
        assert_eq!(check_project(place(home.path(), &project)), Ok(()));
        fs::create_dir_all(project.join(".agents/plugins/theirs/hooks"))?;
        for folder in [project.clone(), project.join("src")] {
            let why = check_project(place(home.path(), &folder)).unwrap_err();
            assert!(why.contains("would decide what goose runs"), "{why}");
        }
        Ok(())
    }
}
