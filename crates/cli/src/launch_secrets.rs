//! Settings of a launch that are not for the database: key commands, which may have a key in them,
//! and addresses with a password. They are files of the user's beside the key, and the database has
//! a name for each that tells nothing of it.

use std::{
    collections::BTreeMap,
    fs::{self, DirBuilder, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use anyhow::{Context, anyhow};
use uuid::Uuid;

use crate::{config::data_folder, own_file, trust::Launches};

/// Settings of the built-in agent that flags and the environment override, by name.
pub type Overrides = BTreeMap<String, String>;

/// Before the name of a setting whose value is such a name.
const ASIDE: &str = "aside:";

/// The longest that is read; the command line takes no more.
const LONGEST: u64 = 1_000_000;

/// Where the files are, if the user has a data folder.
pub(crate) fn folder() -> Option<PathBuf> {
    data_folder().map(|folder| folder.join("launches"))
}

/// The settings with names in the place of what is confidential, which is written to files.
pub(crate) fn store_secrets(
    overrides: &Overrides,
    launches: &Launches,
) -> anyhow::Result<Overrides> {
    let mut stored = Overrides::new();
    for (key, value) in overrides {
        if is_confidential(key, value) {
            let name = launches.name_of(value);
            let folder = folder().ok_or_else(|| anyhow!("HOME is not set"))?;
            let written = write(&folder, &name, value);
            written.with_context(|| format!("{key} cannot be kept in {}", folder.display()))?;
            stored.insert(format!("{ASIDE}{key}"), name);
        } else {
            stored.insert(key.clone(), value.clone());
        }
    }
    Ok(stored)
}

/// The settings as they were at the launch.
pub(crate) fn load_secrets(stored: Overrides, launches: &Launches) -> anyhow::Result<Overrides> {
    let back = stored.into_iter().map(|(key, value)| {
        let Some(key) = key.strip_prefix(ASIDE) else {
            return Ok((key, value));
        };
        let file = folder()
            .ok_or_else(|| anyhow!("HOME is not set"))?
            .join(&value);
        let text = read(&file).with_context(|| {
            format!(
                "the {key} of this launch is not in {} any more; launch it anew",
                file.display()
            )
        })?;
        if launches.name_of(&text) == value {
            Ok((key.to_owned(), text))
        } else {
            Err(anyhow!("{} was changed; launch it anew", file.display()))
        }
    });
    back.collect()
}

fn is_confidential(key: &str, value: &str) -> bool {
    let Some((_, what)) = key
        .strip_prefix("providers.")
        .and_then(|key| key.rsplit_once('.'))
    else {
        return false;
    };
    what == "key_command" || (what == "base_url" && value.contains('@'))
}

/// Makes the file whole or not at all.
fn write(folder: &Path, name: &str, text: &str) -> io::Result<()> {
    let file = folder.join(name);
    if read(&file).is_ok_and(|there| there == text) {
        return Ok(());
    }
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(0o700).create(folder)?;
    let draft = folder.join(format!("{name}.{}", Uuid::new_v4().simple()));
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    let mut opened = own_file::open(&draft, &mut options)?;
    opened.write_all(text.as_bytes())?;
    opened.sync_all()?;
    fs::rename(&draft, &file)
}

fn read(file: &Path) -> io::Result<String> {
    let mut text = String::new();
    let opened = own_file::open(file, OpenOptions::new().read(true))?;
    opened.take(LONGEST).read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::is_confidential;

    #[rstest]
    #[case("providers.x.key_command", "pass show x", true)]
    #[case("providers.x.base_url", "https://me:hush@host/v1", true)]
    #[case("providers.x.base_url", "https://host/v1", false)]
    #[case("providers.x.key_env", "X_KEY", false)]
    #[case("permissions.mode", "yolo", false)]
    fn what_is_put_aside(#[case] key: &str, #[case] value: &str, #[case] confidential: bool) {
        assert_eq!(is_confidential(key, value), confidential);
    }
}
