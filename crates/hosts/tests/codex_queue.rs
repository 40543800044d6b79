//! How an idle thread of Codex is told something: by an app server, or by Codex's command line where that
//! does not know the method. Codex is a script here; the stories inside the real one are in the CLI's tests.
#![expect(clippy::expect_used, reason = "a test may panic; its helpers too")]

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use asyncagents_core::{
    id::SessionId,
    notify::Message,
    port::{Delivery, Host, HostError, Notice},
};
use asyncagents_hosts::{OutsideHost, codex::Codex};
use tempfile::TempDir;

const THREAD: &str = "0199aaaa-bbbb-7ccc-8ddd-eeeeeeeeeeee";

/// A home with one thread, and a program that notes what it is asked for in `asked`.
struct World {
    folder: TempDir,
}

impl World {
    /// `answer` is what the app server says to anything but the handshake.
    fn new(answer: &str, queue_exit: u8) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let day = folder.path().join("sessions/2026/01/02");
        fs::create_dir_all(&day).expect("made");
        let rollout = day.join(format!("rollout-2026-01-02T03-04-05-{THREAD}.jsonl"));
        fs::write(rollout, "{\"type\":\"session_meta\",\"payload\":{}}\n").expect("written");
        let asked = folder.path().join("asked");
        let script = format!(
            r#"#!/bin/sh
if [ "$1" = queue ]; then
  printf '%s\n' "$*" >> '{asked}'
  echo 'no such thread' >&2
  exit {queue_exit}
fi
while read -r line; do
  case $line in
    *'"method":"initialize"'*) echo '{{"id":1,"result":{{}}}}' ;;
    *'"method":"initialized"'*) ;;
    *) printf '%s\n' "$line" >> '{asked}'; echo '{{"id":2,{answer}}}' ;;
  esac
done
"#,
            asked = asked.display()
        );
        let program = folder.path().join("codex");
        fs::write(&program, script).expect("written");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("set");
        Self { folder }
    }

    fn host(&self) -> OutsideHost {
        let home: PathBuf = self.folder.path().to_owned();
        OutsideHost::new(Codex::new(home.clone(), home.join("codex")))
    }

    async fn tell(&self) -> Result<Delivery, HostError> {
        let notice = Notice {
            id: "task_1.notice.0".into(),
            message: Message {
                visible: "Agent \"Count\" finished.".to_owned(),
                hidden: "Its result: SECRET".to_owned(),
            },
        };
        self.host().deliver(&thread(), notice).await
    }

    fn asked(&self) -> String {
        let asked: &Path = &self.folder.path().join("asked");
        fs::read_to_string(asked).unwrap_or_default()
    }
}

fn thread() -> SessionId {
    THREAD.into()
}

#[tokio::test]
async fn a_notice_goes_to_the_app_server_under_its_own_name() {
    let world = World::new(r#""result":{}"#, 0);
    assert_eq!(world.tell().await, Ok(Delivery::Taken));
    let asked = world.asked();
    assert!(asked.contains("thread/queue/add"), "{asked}");
    assert!(
        asked.contains(r#""clientUserMessageId":"task_1.notice.0""#),
        "{asked}"
    );
    assert!(asked.contains("SECRET"), "{asked}");
    assert!(!asked.contains("queue --thread"), "{asked}");
}

/// Everybody can read what a command is given.
#[tokio::test]
async fn where_the_server_does_not_know_the_method_the_command_tells_it_without_results() {
    let world = World::new(r#""error":{"code":-32600,"message":"unknown variant"}"#, 0);
    assert_eq!(world.tell().await, Ok(Delivery::Taken));
    let asked = world.asked();
    let (_, command) = asked.split_once("queue --thread").expect("the command");
    assert!(command.contains(THREAD), "{command}");
    assert!(command.contains("Agent \"Count\" finished."), "{command}");
    assert!(
        command.contains("[asyncagents notice task_1.notice.0]"),
        "{command}"
    );
    assert!(!command.contains("SECRET"), "{command}");
    // What it took is on its way: it cannot be asked.
    let (host, notice) = (world.host(), "task_1.notice.0".into());
    let on_its_way = host.is_on_its_way(&thread(), &notice).await;
    assert_eq!(on_its_way, Ok(true));
}

/// Then hooks and answers may tell it meanwhile.
#[tokio::test]
async fn what_the_server_says_it_did_not_do_is_not_on_its_way() {
    let world = World::new(r#""error":{"code":-32603,"message":"disk full"}"#, 0);
    assert_eq!(world.tell().await, Ok(Delivery::NotNow));
    assert!(!world.asked().contains("queue --thread"));
}

#[tokio::test]
async fn without_a_program_it_is_not_on_its_way_either() {
    let world = World::new(r#""result":{}"#, 0);
    fs::remove_file(world.folder.path().join("codex")).expect("removed");
    assert_eq!(world.tell().await, Ok(Delivery::NotNow));
}

/// It may have been queued, so it is looked for before it is sent again.
#[tokio::test]
async fn of_what_the_server_did_not_answer_nobody_knows() {
    let world = World::new(r#""result":{}"#, 0);
    let program = world.folder.path().join("codex");
    let script = fs::read_to_string(&program).expect("read");
    let ends = script.replace("echo '{\"id\":2", "exit; echo '{\"id\":2");
    fs::write(&program, ends).expect("written");
    let told = world.tell().await;
    assert!(matches!(told, Err(HostError::Unreachable(_))), "{told:?}");
    assert!(world.asked().contains("thread/queue/add"));
}

#[tokio::test]
async fn a_command_that_fails_says_why() {
    let world = World::new(r#""error":{"code":-32601,"message":"unknown"}"#, 3);
    let told = world.tell().await;
    assert!(
        matches!(&told, Err(HostError::Unreachable(why)) if why.contains("no such thread")),
        "{told:?}"
    );
}
