//! The OpenCode 2 that this process is the bridge of: one connection, and a host for each folder.

use std::{
    collections::HashMap,
    env,
    sync::{Arc, Mutex},
};

use asyncagents_core::{
    host_ref::{HostRef, HostSetup},
    lock::lock,
    moment::Moment,
    port::{Host, HostError},
};
use asyncagents_hosts::{
    Connection,
    opencode::process::{identity, is_alive},
    opencode2::{
        OpenCode2, Settings,
        service::{Service, service_file},
    },
};
use asyncagents_runtime::SystemClock;

use super::{HostKind, opencode2_transport::over_http, wrong_kind};
use crate::folders::opencode2_data;

/// The server of OpenCode 2 that this process belongs to. Without one, this process is no bridge
/// of an OpenCode 2.
#[derive(Default)]
pub(crate) struct Bridge2 {
    server: Mutex<Option<Server>>,
}

/// What a server says of itself when it connects.
pub(crate) struct Connected {
    pub(crate) connection: Arc<dyn Connection>,
    pub(crate) pid: u32,
    pub(crate) began: Option<Moment>,
    /// Whether it goes on with its sessions when it is started again.
    pub(crate) resumes: bool,
    /// Whether it is reached through its plugin.
    pub(crate) relayed: bool,
}

struct Server {
    process: String,
    resumes: bool,
    /// Its process, if it is reached through its plugin.
    relayed: Option<u32>,
    connection: Arc<dyn Connection>,
    settings: Settings,
    folders: HashMap<String, Arc<OpenCode2>>,
}

impl Server {
    fn new(connected: Connected, prefix: &str) -> Self {
        Self {
            process: identity(connected.pid),
            resumes: connected.resumes,
            relayed: connected.relayed.then_some(connected.pid),
            connection: connected.connection,
            settings: Settings {
                prefix: prefix.to_owned(),
                folder: None,
                // One that goes on with its sessions by itself wakes those that wait for them.
                began: connected.began.filter(|_| !connected.resumes),
                plugin_binds: true,
            },
            folders: HashMap::new(),
        }
    }

    fn host_ref(&self, folder: &str) -> HostRef {
        HostRef::OpenCode2Bridge {
            folder: folder.into(),
            process: self.process.as_str().into(),
            data: opencode2_data().into(),
            background: self.resumes,
        }
    }

    /// Whether it goes on with the sessions of a server that has ended. What the background server
    /// was at is resumed by the next one alone.
    fn follows(&self, process: &str, data: &str, background: bool) -> bool {
        data == opencode2_data() && (self.resumes || !background) && !is_alive(process)
    }

    /// The server in a folder.
    fn host(&mut self, folder: &str) -> Arc<OpenCode2> {
        let host = self.folders.entry(folder.to_owned()).or_insert_with(|| {
            let settings = Settings {
                folder: Some(folder.to_owned()),
                ..self.settings.clone()
            };
            let connection = self.connection.clone();
            Arc::new(OpenCode2::new(connection, Arc::new(SystemClock), settings))
        });
        host.clone()
    }
}

impl Bridge2 {
    /// The server is there. One that is known keeps its connection: there are listeners to it.
    pub(crate) fn connect(&self, connected: Connected, prefix: &str) {
        let mut server = lock(&self.server);
        server.get_or_insert_with(|| Server::new(connected, prefix));
    }

    /// Takes another connection to a server that is reached through its plugin, if `find` has one
    /// for its process. What works over the first stays there until it ends.
    pub(crate) fn replace_relay(&self, find: impl FnOnce(u32) -> Option<Connected>) -> bool {
        let mut server = lock(&self.server);
        let Some(known) = server.as_mut() else {
            return false;
        };
        let Some(connected) = known.relayed.and_then(find) else {
            return false;
        };
        *known = Server::new(connected, &known.settings.prefix);
        true
    }

    pub(crate) fn is_connected(&self) -> bool {
        lock(&self.server).is_some()
    }

    /// The server in a folder, and its name.
    pub(crate) fn in_folder(&self, folder: &str) -> Option<(HostRef, Arc<OpenCode2>)> {
        let mut server = lock(&self.server);
        let server = server.as_mut()?;
        Some((server.host_ref(folder), server.host(folder)))
    }

    /// The server's process, if what worked in it ends with it.
    pub(crate) fn process_to_end_with(&self) -> Option<String> {
        let server = lock(&self.server);
        let server = server.as_ref().filter(|server| !server.resumes);
        server.map(|server| server.process.clone())
    }
}

impl HostKind for Bridge2 {
    /// Its own tasks, and those of a server that had the same sessions and has ended.
    fn serves(&self, host: &HostRef) -> bool {
        let HostRef::OpenCode2Bridge {
            process,
            data,
            background,
            ..
        } = host
        else {
            return false;
        };
        let server = lock(&self.server);
        server.as_ref().is_some_and(|server| {
            server.process == **process || server.follows(process, data, *background)
        })
    }

    /// The server of this process, in place of another that has ended.
    fn successor(&self, host: &HostRef) -> Option<HostRef> {
        let HostRef::OpenCode2Bridge { folder, .. } = host else {
            return None;
        };
        if !self.serves(host) {
            return None;
        }
        let server = lock(&self.server);
        let here = server.as_ref()?.host_ref(folder);
        (here != *host).then_some(here)
    }

    fn open(&self, setup: &HostSetup) -> Result<Arc<dyn Host>, HostError> {
        let HostRef::OpenCode2Bridge {
            folder,
            process,
            data,
            background,
        } = &setup.host
        else {
            return Err(wrong_kind(&setup.host));
        };
        if let Some(server) = &mut *lock(&self.server) {
            let host = server.host(folder);
            return if server.process == **process {
                Ok(host)
            } else if server.follows(process, data, *background) {
                Ok(Arc::new(host.successor()))
            } else {
                let why = "its OpenCode is not here".to_owned();
                Err(HostError::Unreachable(why))
            };
        }
        from_outside(folder, process, data).map(|host| Arc::new(host) as Arc<dyn Host>)
    }
}

/// The background server, asked from a shell: for what is only read, that needs no bridge.
fn from_outside(folder: &str, process: &str, data: &str) -> Result<OpenCode2, HostError> {
    let unreachable = |why: String| Err(HostError::Unreachable(why));
    let file = service_file(|name| env::var_os(name));
    let service = match file.map(|file| Service::read(&file)).transpose() {
        Ok(service) => service.flatten(),
        Err(error) => return unreachable(error.to_string()),
    };
    match service {
        Some(service) if data == opencode2_data() => {
            let settings = Settings {
                folder: Some(folder.to_owned()),
                plugin_binds: true,
                ..Settings::default()
            };
            let connection = Arc::new(over_http(&service)?);
            Ok(OpenCode2::new(connection, Arc::new(SystemClock), settings))
        }
        _ if is_alive(process) => {
            unreachable("only its OpenCode knows the conversation; ask there".to_owned())
        }
        _ => unreachable("its OpenCode is not running any more".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use asyncagents_core::{
        id::TaskId,
        notify::Message,
        port::{Clock, Notice},
    };
    use asyncagents_hosts::{Request, Response, Signal};
    use serde_json::Value;
    use tokio::sync::mpsc;

    use super::*;

    /// A server in which nothing has happened since it was started. It takes what it is told, and
    /// keeps it here.
    #[derive(Default)]
    struct Quiet(Mutex<Vec<Value>>);

    #[async_trait]
    impl Connection for Quiet {
        async fn send(&self, request: Request) -> Result<Response, HostError> {
            let body = match request.path.as_str() {
                "/api/session/active" => r#"{"data":{}}"#,
                path if path.ends_with("/message") => r#"{"data":[],"cursor":{}}"#,
                _ => r#"{"data":{"id":"msg_1"}}"#,
            };
            lock(&self.0).extend(request.body);
            Ok(Response {
                status: 200,
                body: body.to_owned(),
                next: None,
            })
        }

        fn signals(&self) -> mpsc::UnboundedReceiver<Signal> {
            mpsc::unbounded_channel().1
        }
    }

    fn bridge(resumes: bool) -> Bridge2 {
        bridge_to(Arc::default(), resumes)
    }

    fn bridge_to(server: Arc<Quiet>, resumes: bool) -> Bridge2 {
        let bridge = Bridge2::default();
        let connected = Connected {
            connection: server,
            pid: std::process::id(),
            began: Some(SystemClock.now()),
            resumes,
            relayed: !resumes,
        };
        bridge.connect(connected, "a_");
        bridge
    }

    /// A background server may write its file after its plugins are loaded.
    #[tokio::test]
    async fn what_is_launched_after_the_file_has_come_goes_over_http() {
        let (relayed, over_http) = (Arc::new(Quiet::default()), Arc::new(Quiet::default()));
        let bridge = bridge_to(relayed.clone(), false);
        let (before, at_work) = bridge
            .in_folder("/srv")
            .unwrap_or_else(|| panic!("a server"));
        assert!(!bridge.replace_relay(|_| None));
        let found = |pid| {
            Some(Connected {
                connection: over_http.clone(),
                pid,
                began: None,
                resumes: true,
                relayed: false,
            })
        };
        assert!(bridge.replace_relay(found));
        let (after, host) = bridge
            .in_folder("/srv")
            .unwrap_or_else(|| panic!("a server"));
        // OpenCode itself goes on with what is launched from now on.
        let HostRef::OpenCode2Bridge { background, .. } = after else {
            panic!("a bridge");
        };
        assert!(background && bridge.process_to_end_with().is_none());
        // What was at work is worked on where it was, and is of this process as before.
        assert!(bridge.serves(&before));
        for host in [&at_work, &host] {
            let stopped = host.abort(&"ses_1".into()).await;
            assert!(stopped.is_ok(), "{stopped:?}");
        }
        assert_eq!((lock(&relayed.0).len(), lock(&over_http.0).len()), (1, 1));
        // Once is enough: there are listeners.
        assert!(!bridge.replace_relay(found));
    }

    /// A task of a server that has ended.
    fn task_of_ended(background: bool) -> HostRef {
        HostRef::OpenCode2Bridge {
            folder: "/srv".into(),
            process: "999999999@1".into(),
            data: opencode2_data().into(),
            background,
        }
    }

    #[test]
    fn what_the_background_server_was_at_is_left_to_the_next_one() {
        assert!(bridge(true).serves(&task_of_ended(true)));
        assert!(bridge(true).serves(&task_of_ended(false)));
        assert!(bridge(false).serves(&task_of_ended(false)));
        assert!(!bridge(false).serves(&task_of_ended(true)));
        assert!(bridge(false).successor(&task_of_ended(true)).is_none());
    }

    /// Two bridges that work on one task would both prompt its session.
    #[test]
    fn a_task_is_opened_by_the_bridge_of_its_own_server_or_of_one_that_follows_it() {
        let bridge = bridge(false);
        let (own, _) = bridge
            .in_folder("/srv")
            .unwrap_or_else(|| panic!("a server"));
        let of = |process: &str, data: &str| HostRef::OpenCode2Bridge {
            folder: "/srv".into(),
            process: process.into(),
            data: data.into(),
            background: false,
        };
        let data = opencode2_data();
        // Of all processes, the first is certainly alive.
        let alive = of(&identity(1), &data);
        for (host, is_opened) in [
            (own, true),
            (task_of_ended(false), true),
            (task_of_ended(true), false),
            (alive, false),
            (of("999999999@1", "/other/sessions"), false),
        ] {
            assert_eq!(bridge.serves(&host), is_opened, "{host}");
            let opened = bridge.open(&HostSetup::from(host.clone()));
            assert_eq!(opened.is_ok(), is_opened, "{host}");
        }
    }

    /// OpenCode itself goes on with what the background server was at, so a parent that waits there
    /// is not for a person to open first.
    #[tokio::test]
    async fn a_parent_is_woken_after_a_restart_where_opencode_goes_on_by_itself() {
        for (resumes, wakes) in [(true, true), (false, false)] {
            let server = Arc::new(Quiet::default());
            let bridge = bridge_to(server.clone(), resumes);
            let task = TaskId::from_random(1);
            let setup = HostSetup::from(task_of_ended(resumes));
            let notice = Notice {
                id: task.notice(0),
                message: Message {
                    visible: "It has ended.".to_owned(),
                    hidden: String::new(),
                },
            };
            let host = bridge
                .open(&setup)
                .unwrap_or_else(|error| panic!("{error}"));
            let told = host.deliver(&"ses_parent".into(), notice).await;
            assert!(told.is_ok(), "{told:?}");
            let sent = lock(&server.0).clone();
            assert_eq!(sent.len(), 1, "{sent:?}");
            assert_eq!(sent[0]["resume"] == Value::Bool(false), !wakes, "{sent:?}");
        }
    }
}
