//! A second plugin, of the test, that writes down every API request that plugins make.

use std::{fs, path::Path};

/// Puts it into a project; it writes into `log`.
pub(super) fn install(project: &Path, log: &Path) {
    let plugin = format!(
        r#"import {{ appendFileSync }} from "node:fs"
export const Spy = async ({{ client }}) => {{
  client._client.interceptors.request.use((request) => {{
    appendFileSync({log:?}, request.method + " " + new URL(request.url).pathname + "\n")
    return request
  }})
  return {{}}
}}
"#
    );
    let folder = project.join(".opencode/plugin");
    fs::create_dir_all(&folder).expect("made");
    fs::write(folder.join("spy.js"), plugin).expect("written");
}
