//! The file of OpenCode 2's background server: what is believed, and what is said of the rest.
#![expect(clippy::expect_used, reason = "a test may panic; its helpers too")]

use std::{
    fs,
    net::TcpListener,
    os::unix::fs::{PermissionsExt, symlink},
    path::PathBuf,
    process::{Command, id},
};

use asyncagents_core::secret::Secret;
use asyncagents_hosts::opencode2::service::{Service, password, service_file};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A state folder with the file of a server, which is this process.
struct State {
    folder: TempDir,
    server: TcpListener,
}

impl State {
    fn new() -> Self {
        let state = Self {
            folder: tempfile::tempdir().expect("a folder"),
            server: TcpListener::bind("127.0.0.1:0").expect("a port"),
        };
        state.write(&state.written());
        state
    }

    fn port(&self) -> u16 {
        self.server.local_addr().expect("bound").port()
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("service.json")
    }

    fn written(&self) -> Value {
        json!({
            "id": "6ef494ee", "version": "2.0.0", "pid": id(), "password": "very-secret",
            "url": format!("http://127.0.0.1:{}", self.port()),
        })
    }

    fn write(&self, value: &Value) {
        fs::write(self.file(), value.to_string()).expect("written");
        self.mode(0o600);
    }

    fn mode(&self, mode: u32) {
        let mode = PermissionsExt::from_mode(mode);
        fs::set_permissions(self.file(), mode).expect("changed");
    }

    /// What is said of the file, which never has the password in it.
    fn refused(&self) -> String {
        let error = Service::of_process(&self.file(), id()).expect_err("it is refused");
        let said = error.to_string();
        assert!(said.starts_with(&self.file().display().to_string()));
        assert!(!format!("{said} {error:?}").contains("very-secret"));
        said
    }
}

#[test]
fn a_file_as_opencode_writes_it_is_believed() {
    let state = State::new();
    let service = Service::of_process(&state.file(), id()).expect("is fine");
    let service = service.expect("is there");
    assert_eq!(service.url, format!("http://127.0.0.1:{}", state.port()));
    assert_eq!(service.password, Secret::new("very-secret"));
    assert!(!format!("{service:?}").contains("very-secret"));
}

#[test]
fn no_file_is_no_server() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["service.json", "file/service.json"] {
        fs::write(folder.path().join("file"), "").expect("written");
        let read = Service::read(&folder.path().join(name));
        assert_eq!(read.expect("is fine"), None);
    }
}

#[test]
fn a_file_that_others_can_read_or_may_have_put_there_is_refused() {
    let state = State::new();
    for mode in [0o640, 0o604, 0o660, 0o666] {
        state.mode(mode);
        let said = state.refused();
        assert!(said.contains("other users may read or change it"), "{said}");
        assert!(said.contains(&format!("mode {mode:o}")), "{said}");
    }
    let real = state.folder.path().join("real.json");
    state.mode(0o600);
    fs::rename(state.file(), &real).expect("renamed");
    symlink(&real, state.file()).expect("linked");
    assert!(state.refused().contains("it is a link"));
    fs::remove_file(state.file()).expect("removed");
    fs::create_dir(state.file()).expect("made");
    assert!(state.refused().contains("no file at all"));
}

#[test]
fn a_process_that_is_another_or_has_ended_is_told_from_the_right_one() {
    let state = State::new();
    let mut other = Command::new("sleep").arg("60").spawn().expect("sleep");
    let mut written = state.written();
    written["pid"] = json!(other.id());
    state.write(&written);
    let said = state.refused();
    if cfg!(target_os = "linux") {
        assert!(said.contains("does not listen"), "{said}");
    } else {
        assert!(said.contains("and not about"), "{said}");
    }
    other.kill().expect("killed");
    other.wait().expect("ended");
    assert!(state.refused().contains("is not running or not yours"));
    for nobody in [0, u32::MAX] {
        written["pid"] = json!(nobody);
        state.write(&written);
        assert!(state.refused().contains("is not running or not yours"));
    }
    state.write(&state.written());
    let wanted = Service::of_process(&state.file(), 1).expect_err("it is another");
    let said = wanted.to_string();
    assert!(said.ends_with(&format!("it is about process {}, and not about 1", id())));
}

#[cfg(target_os = "linux")]
#[test]
fn a_password_does_not_go_to_a_port_of_another_process() {
    let state = State::new();
    let closed = {
        let closing = TcpListener::bind("127.0.0.1:0").expect("a port");
        closing.local_addr().expect("bound").port()
    };
    let mut written = state.written();
    written["url"] = json!(format!("http://127.0.0.1:{closed}"));
    state.write(&written);
    assert!(state.refused().contains("does not listen"));
    // Nor to one that has the same port at the machine's other address.
    written["url"] = json!(format!("http://[::1]:{}", state.port()));
    state.write(&written);
    assert!(state.refused().contains("does not listen"));
}

#[test]
fn an_address_elsewhere_is_refused() {
    let state = State::new();
    let port = state.port();
    for url in [
        format!("https://127.0.0.1:{port}"),
        format!("http://192.0.2.1:{port}"),
        format!("http://127.0.0.1.example.org:{port}"),
        format!("http://me:pw@127.0.0.1:{port}"),
        format!("http://127.0.0.1:{port}/path"),
        format!("http://127.0.0.1:{port}/?a=b"),
        "http://127.0.0.1".to_owned(),
        "file:///etc/passwd".to_owned(),
        String::new(),
    ] {
        let mut written = state.written();
        written["url"] = json!(url);
        state.write(&written);
        let said = state.refused();
        assert!(said.contains("not `http` on this machine"), "{url}: {said}");
    }
    for host in ["localhost", "0.0.0.0"] {
        let mut written = state.written();
        written["url"] = json!(format!("http://{host}:{port}/"));
        state.write(&written);
        let service = Service::read(&state.file()).expect("is fine");
        let service = service.expect("is there");
        assert_eq!(service.url, format!("http://127.0.0.1:{port}"));
    }
}

#[test]
fn what_opencode_would_not_write_is_refused_without_showing_it() {
    let state = State::new();
    for text in [
        "",
        "null",
        r#"{"password":"very-secret"}"#,
        r#"{"url":"very-secret","pid":"very-secret","password":"x"}"#,
        r#"{"url":1,"pid":2,"password":"very-secret"}"#,
    ] {
        fs::write(state.file(), text).expect("written");
        let said = state.refused();
        assert!(said.contains("not what OpenCode 2 writes there"), "{said}");
    }
    fs::write(state.file(), [0xff, 0xfe]).expect("written");
    assert!(state.refused().contains("not what OpenCode 2 writes"));
    fs::write(state.file(), " ".repeat(70_000)).expect("written");
    assert!(state.refused().contains("longer than anything"));
}

#[test]
fn the_file_is_in_the_state_folder_of_the_environment() {
    let with = |set: &'static [(&str, &str)]| {
        service_file(move |name| {
            let mut set = set.iter();
            let found = set.find(|(key, _)| *key == name);
            found.map(|(_, value)| (*value).into())
        })
    };
    let usual = with(&[("HOME", "/home/me"), ("XDG_STATE_HOME", "")]);
    assert_eq!(
        usual,
        Some("/home/me/.local/state/opencode/service.json".into())
    );
    let own = with(&[("HOME", "/home/me"), ("XDG_STATE_HOME", "/s")]);
    assert_eq!(own, Some("/s/opencode/service.json".into()));
    assert_eq!(with(&[]), None);
}

#[test]
fn a_password_in_the_environment_has_two_names() {
    let with = |set: &'static [(&str, &str)]| {
        password(move |name| {
            let mut set = set.iter();
            let found = set.find(|(key, _)| *key == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    };
    let both = [
        ("OPENCODE_PASSWORD", ""),
        ("OPENCODE_SERVER_PASSWORD", "two"),
    ];
    assert_eq!(
        with(&[("OPENCODE_PASSWORD", "one")]),
        Some(Secret::new("one"))
    );
    assert_eq!(with(&[]), None);
    let both: &'static [_] = Vec::from(both).leak();
    assert_eq!(with(both), Some(Secret::new("two")));
}
