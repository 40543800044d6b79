//! Skills for clients that follow them by themselves (the extension `io.modelcontextprotocol/skills`): a
//! list, an entry for each with the digests of its files, and the files as resources.

use std::{collections::BTreeMap, fmt::Write, io};

use asyncagents_core::skill::{Listed, head};
use asyncagents_runtime::{SkillFile, skill_files};
use base64::{Engine, engine::general_purpose::STANDARD};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use rmcp::{
    RoleServer,
    model::{ExtensionCapabilities, JsonObject, Resource, ResourceContents},
    service::RequestContext,
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

const EXTENSION: &str = "io.modelcontextprotocol/skills";
const SCHEME: &str = "skill://";
/// Every skill has this file.
const MAIN: &str = "SKILL.md";

pub(super) const LIST: &str = "skills/list";
pub(super) const GET: &str = "skills/get";

/// How many skills are listed at once.
const PAGE: usize = 50;
/// How long a client may believe what it was shown. Files change while they are worked on.
const FRESH_MILLIS: u64 = 5_000;

/// What may stand in an address as it is.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// What a server that has this extension says of it.
pub(super) fn extension() -> ExtensionCapabilities {
    let settings = (EXTENSION.to_owned(), JsonObject::new());
    [settings].into_iter().collect()
}

/// Whether the client that makes this request says that it knows this extension.
pub(super) fn is_spoken_by(context: &RequestContext<RoleServer>) -> bool {
    let extensions = context
        .client_capabilities()
        .and_then(|capabilities| capabilities.extensions);
    extensions.is_some_and(|extensions| extensions.contains_key(EXTENSION))
}

pub(super) fn is_address(uri: &str) -> bool {
    uri.starts_with(SCHEME)
}

pub(super) fn no_skill(uri: &str) -> String {
    format!("there is no skill {uri}; {LIST} shows which there are")
}

pub(super) fn no_file(uri: &str) -> String {
    format!("there is no file {uri}; {GET} shows the files of a skill")
}

/// A skill that a client can be given.
#[derive(Debug, Clone)]
pub struct ServedSkill {
    /// Where it is: the last part is its name. One that an address cannot have is left out.
    pub path: String,
    pub source: SkillSource,
}

/// Where a skill's files are.
#[derive(Debug, Clone)]
pub enum SkillSource {
    /// In this program: it is one file.
    Text(&'static str),
    Folder(Listed),
}

/// The skills that clients are given, by their paths.
pub(super) struct ServedSkills(BTreeMap<String, SkillSource>);

/// A skill with its files, as they are now.
struct Entry {
    path: String,
    head: BTreeMap<String, Value>,
    files: Vec<SkillFile>,
}

impl ServedSkills {
    pub(super) fn new(skills: Vec<ServedSkill>) -> Self {
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '/');
        let fitting = skills
            .into_iter()
            .filter(|skill| skill.path.chars().all(fits));
        let skills = fitting.map(|skill| (skill.path, skill.source));
        Self(skills.collect())
    }

    /// The skills that come after this one in the order of their paths.
    pub(super) fn list(self, after: Option<&str>) -> Value {
        let is_after = |path: &&String| after.is_none_or(|after| path.as_str() > after);
        let mut rest = self.0.keys().filter(is_after);
        let page: Vec<&String> = rest.by_ref().take(PAGE).collect();
        let entries = page.iter().filter_map(|path| self.entry(path));
        let skills: Vec<Value> = entries.map(|entry| entry.json()).collect();
        let mut result = complete(json!({"skills": skills}));
        if let (Some(last), Some(_)) = (page.last(), rest.next()) {
            result["nextCursor"] = json!(last);
        }
        result
    }

    /// One skill, by the address of its main file.
    pub(super) fn get(self, uri: &str) -> Option<Value> {
        let path = uri.strip_prefix(SCHEME)?.strip_suffix(MAIN)?;
        let entry = self.entry(path.strip_suffix('/')?)?;
        Some(complete(json!({"skill": entry.json()})))
    }

    /// A file of a skill.
    pub(super) fn read(self, uri: &str) -> Option<ResourceContents> {
        let wanted = uri.strip_prefix(SCHEME)?;
        let is_around = |path: &&String| wanted.starts_with(&format!("{path}/"));
        let around = self.0.keys().filter(is_around);
        let mut files = around.flat_map(|path| {
            let files = self.entry(path).map(|entry| entry.files).into_iter();
            files
                .flatten()
                .map(|file| (address(path, &file.path), file))
        });
        let (_, file) = files.find(|(address, _)| address == uri)?;
        let kind = kind(&file.path, &file.bytes);
        let contents = match String::from_utf8(file.bytes) {
            Ok(text) => ResourceContents::text(text, uri),
            Err(binary) => ResourceContents::blob(STANDARD.encode(binary.as_bytes()), uri),
        };
        Some(contents.with_mime_type(kind))
    }

    /// The main files, for lists of resources.
    pub(super) fn resources(self) -> Vec<Resource> {
        let entries = self.0.keys().filter_map(|path| self.entry(path));
        let resources = entries.map(|entry| {
            let text = |key: &str| entry.head.get(key).and_then(Value::as_str);
            let name = text("name").unwrap_or(&entry.path);
            Resource::new(address(&entry.path, MAIN), name)
                .with_description(text("description").unwrap_or_default())
                .with_mime_type("text/markdown")
        });
        resources.collect()
    }

    /// A skill, if it is one by the rules of the extension: its head is YAML, and its name that of its
    /// place.
    fn entry(&self, path: &str) -> Option<Entry> {
        let files = self.0.get(path)?.files(path)?;
        let main = files.iter().find(|file| file.path == MAIN)?;
        let head = head(std::str::from_utf8(&main.bytes).ok()?)?;
        let name = head.get("name")?.as_str()?;
        let is_named = path.rsplit('/').next() == Some(name);
        let is_described = head.get("description").is_some_and(Value::is_string);
        (is_named && is_described).then(|| Entry {
            path: path.to_owned(),
            head,
            files,
        })
    }
}

impl SkillSource {
    fn files(&self, path: &str) -> Option<Vec<SkillFile>> {
        match self {
            Self::Text(text) => Some(vec![SkillFile {
                path: MAIN.to_owned(),
                bytes: text.as_bytes().to_vec(),
            }]),
            Self::Folder(listed) => {
                let files = skill_files(listed);
                let warn = |error: &io::Error| {
                    tracing::warn!(skill = path, %error, "a skill is not served to clients");
                };
                files.inspect_err(warn).ok()
            }
        }
    }
}

impl Entry {
    fn json(&self) -> Value {
        let files = self.files.iter().map(|file| {
            json!({
                "uri": address(&self.path, &file.path),
                "digest": digest(&file.bytes),
                "size": file.bytes.len(),
            })
        });
        json!({
            "uri": address(&self.path, MAIN),
            "frontmatter": self.head,
            "resources": files.collect::<Vec<_>>(),
        })
    }
}

/// A result with what the protocol wants in each that may be kept.
fn complete(mut result: Value) -> Value {
    result["resultType"] = json!("complete");
    result["ttlMs"] = json!(FRESH_MILLIS);
    result["cacheScope"] = json!("private");
    result
}

fn address(skill: &str, file: &str) -> String {
    let parts = file.split('/');
    let parts: Vec<String> = parts
        .map(|part| utf8_percent_encode(part, ESCAPED).to_string())
        .collect();
    format!("{SCHEME}{skill}/{}", parts.join("/"))
}

fn digest(bytes: &[u8]) -> String {
    let mut text = "sha256:".to_owned();
    for byte in Sha256::digest(bytes) {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// What is in a file, by its name.
fn kind(path: &str, bytes: &[u8]) -> &'static str {
    let ending = path.rsplit('.').next().unwrap_or_default();
    match ending {
        "md" => "text/markdown",
        "json" => "application/json",
        "html" => "text/html",
        "png" => "image/png",
        "svg" => "image/svg+xml",
        "pdf" => "application/pdf",
        _ if std::str::from_utf8(bytes).is_ok() => "text/plain",
        _ => "application/octet-stream",
    }
}
