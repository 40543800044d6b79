//! Waits until anyone has written, in this process or another.
//!
//! Whoever has committed sets the time of the file that SQLite shares among processes (`-shm`), and
//! the kernel tells those who wait. The write-ahead log would tell too early: it is written and
//! synced before a commit can be seen. A slow look covers what is not told: a writer that was
//! killed in between, or another program. Where the kernel tells nothing, the looks are quick.

use std::{
    future::Future,
    io,
    path::{Path, PathBuf},
    sync::Mutex,
    time::Duration,
};

use asyncagents_core::lock::lock;
use tokio::{
    sync::watch,
    task::JoinSet,
    time::{self, Instant},
};

use self::bell::Bell;
use crate::open::Options;

/// How much time is between two looks on average, at least: many commits in a row are seen together.
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

/// How many may come at once after a pause. Whoever opens the database to write is heard before it has
/// written: its commit must not wait for the next look.
const LOOKS_AT_ONCE: u32 = 4;

/// One for all who wait in this process.
pub(crate) struct ChangeWatch {
    shared_file: PathBuf,
    options: Options,
    /// The newest version that anyone in this process knows; those who wait listen to it.
    known: watch::Sender<Option<i64>>,
    looking: Mutex<Looking>,
}

/// The one that looks for all who wait.
#[derive(Default)]
struct Looking {
    task: JoinSet<()>,
    /// It has found that nobody waits, and ends.
    is_over: bool,
}

impl ChangeWatch {
    /// Watches the database in this file, which is not a link.
    pub(crate) fn new(database: &Path, options: Options) -> Self {
        let mut shared_file = database.as_os_str().to_owned();
        shared_file.push("-shm");
        Self {
            shared_file: shared_file.into(),
            options,
            known: watch::Sender::new(None),
            looking: Mutex::default(),
        }
    }

    /// Tells every process that something was committed.
    pub(crate) fn ring(&self) {
        bell::ring(&self.shared_file);
    }

    /// A version was read.
    pub(crate) fn found(&self, version: i64) {
        self.known.send_if_modified(|known| {
            let is_new = *known != Some(version);
            *known = Some(version);
            is_new
        });
    }

    /// Returns the version as soon as it is another than this one. `look` reads it, passes it to
    /// [`Self::found`], and answers whether to go on: as long as the store is there and
    /// [`Self::is_awaited`].
    pub(crate) async fn since<F>(&self, version: i64, look: impl Fn() -> F + Send + 'static) -> i64
    where
        F: Future<Output = bool> + Send,
    {
        let mut known = self.known.subscribe();
        self.keep_looking(look);
        let is_newer = |known: &Option<i64>| known.is_some_and(|known| known != version);
        // This holds the other end of the channel, so it is never closed.
        let newer = known.wait_for(is_newer).await;
        newer.ok().and_then(|newer| *newer).unwrap_or(version)
    }

    /// Begins to look, unless that is done already.
    fn keep_looking<F>(&self, look: impl Fn() -> F + Send + 'static)
    where
        F: Future<Output = bool> + Send,
    {
        let mut looking = lock(&self.looking);
        // It ends with the runtime that it was begun in, too.
        while looking.task.try_join_next().is_some() {}
        if looking.task.is_empty() || looking.is_over {
            looking.is_over = false;
            let mut looks = Looks::new(&self.shared_file, self.options);
            looking.task.spawn(async move {
                loop {
                    looks.until_due().await;
                    if !look().await {
                        return;
                    }
                }
            });
        }
    }

    /// Whether anyone waits. If not, nobody looks any more, until someone waits again.
    pub(crate) fn is_awaited(&self) -> bool {
        let mut looking = lock(&self.looking);
        looking.is_over = self.known.receiver_count() == 0;
        !looking.is_over
    }
}

/// When to look.
struct Looks {
    shared_file: PathBuf,
    options: Options,
    bell: Option<Bell>,
    last: Option<Instant>,
    /// When the looks so far have had their time.
    paid_until: Instant,
}

impl Looks {
    fn new(shared_file: &Path, options: Options) -> Self {
        Self {
            shared_file: shared_file.to_owned(),
            options,
            bell: None,
            last: None,
            paid_until: Instant::now(),
        }
    }

    /// Waits until there is a reason to look.
    async fn until_due(&mut self) {
        if let Some(last) = self.last {
            match &self.bell {
                Some(bell) => {
                    let told = last + self.options.fallback_interval;
                    if let Ok(Err(_)) = time::timeout_at(told, bell.rung()).await {
                        self.bell = None;
                    }
                }
                None => time::sleep_until(last + self.options.poll_interval).await,
            }
            let ahead = BETWEEN_LOOKS * (LOOKS_AT_ONCE - 1);
            if let Some(due) = self.paid_until.checked_sub(ahead) {
                time::sleep_until(due).await;
            }
        }
        let now = Instant::now();
        self.last = Some(now);
        self.paid_until = self.paid_until.max(now) + BETWEEN_LOOKS;
        if self.hear_on().is_err() {
            self.bell = None;
        }
    }

    /// Takes note of what was heard, and hears the file that is there now: another one may have
    /// taken its place. What is written from here on is heard.
    fn hear_on(&mut self) -> io::Result<()> {
        let bell = match self.bell.take() {
            Some(bell) => bell,
            None => Bell::new()?,
        };
        bell.hear_on(&self.shared_file)?;
        self.bell = Some(bell);
        Ok(())
    }
}

#[cfg(target_os = "linux")]
mod bell {
    use std::{io, path::Path};

    use rustix::fs::{
        AtFlags, CWD, Timespec, Timestamps, UTIME_NOW,
        inotify::{self, CreateFlags, WatchFlags},
        utimensat,
    };
    use tokio::net::unix::pipe;

    /// Hears when the time of a file is set. To tokio, inotify is read from as a pipe is; its type for
    /// descriptors of all kinds cannot be made without unsafe code.
    pub(super) struct Bell(pipe::Receiver);

    impl Bell {
        pub(super) fn new() -> io::Result<Self> {
            let inotify = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
            pipe::Receiver::from_owned_fd_unchecked(inotify).map(Self)
        }

        /// Forgets what was heard, and hears this file from now on, if it does not already.
        pub(super) fn hear_on(&self, file: &Path) -> io::Result<()> {
            // The time of a file that is deleted is set as well.
            inotify::add_watch(&self.0, file, WatchFlags::ATTRIB)?;
            let mut events = [0; 1024];
            while self.0.try_read(&mut events).is_ok() {}
            Ok(())
        }

        /// Returns at once while there is something that was heard.
        pub(super) async fn rung(&self) -> io::Result<()> {
            self.0.readable().await
        }
    }

    /// Sets the time of a file to now. It is never opened: closing it would give up SQLite's locks.
    pub(super) fn ring(file: &Path) {
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: UTIME_NOW,
        };
        // One of the two alone would be told as something else.
        let times = Timestamps {
            last_access: now,
            last_modification: now,
        };
        // Without it, the others look by themselves a little later.
        let _ = utimensat(CWD, file, &times, AtFlags::SYMLINK_NOFOLLOW);
    }
}

/// Where the kernel tells nothing that can be waited for here.
#[cfg(not(target_os = "linux"))]
mod bell {
    use std::{convert::Infallible, io, path::Path};

    pub(super) struct Bell(Infallible);

    impl Bell {
        pub(super) fn new() -> io::Result<Self> {
            Err(io::ErrorKind::Unsupported.into())
        }

        pub(super) fn hear_on(&self, _: &Path) -> io::Result<()> {
            match self.0 {}
        }

        pub(super) async fn rung(&self) -> io::Result<()> {
            match self.0 {}
        }
    }

    pub(super) fn ring(_: &Path) {}
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::{
        fs,
        sync::{
            Arc,
            atomic::{AtomicUsize, Ordering},
        },
        time::Duration,
    };

    use tokio::time::{Instant, timeout};

    use super::{BETWEEN_LOOKS, ChangeWatch, LOOKS_AT_ONCE, Looks, bell};
    use crate::open::Options;

    const HOUR: Duration = Duration::from_secs(3_600);
    const PATIENCE: Duration = Duration::from_secs(30);

    #[tokio::test(start_paused = true)]
    async fn however_many_wait_the_looks_of_an_idle_minute_can_be_counted_on_two_hands() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("tasks.db");
        fs::write(folder.path().join("tasks.db-shm"), "").unwrap();
        let changes = Arc::new(ChangeWatch::new(&database, Options::default()));
        let looks = Arc::new(AtomicUsize::new(0));
        let wait = || {
            let (weak, looks) = (Arc::downgrade(&changes), looks.clone());
            changes.since(7, move || {
                looks.fetch_add(1, Ordering::SeqCst);
                let changes = weak.upgrade();
                async move {
                    changes.is_some_and(|changes| {
                        changes.found(7);
                        changes.is_awaited()
                    })
                }
            })
        };
        let minute = Duration::from_secs(60);
        let all = async { tokio::join!(wait(), wait(), wait()) };
        assert!(timeout(minute, all).await.is_err(), "nobody has written");
        let in_a_minute = looks.load(Ordering::SeqCst);
        assert!((2..=13).contains(&in_a_minute), "{in_a_minute} looks");
        // Nobody waits any more, so nobody looks.
        tokio::time::sleep(minute).await;
        assert!(looks.load(Ordering::SeqCst) <= in_a_minute + 1);
        assert!(timeout(minute, wait()).await.is_err(), "nobody has written");
        assert!(looks.load(Ordering::SeqCst) > in_a_minute + 2, "it goes on");
    }

    #[tokio::test(start_paused = true)]
    async fn a_commit_right_after_a_look_is_seen_at_once_and_many_are_seen_together() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tasks.db-shm");
        fs::write(&file, "").unwrap();
        let mut looks = Looks::new(&file, Options::default());
        looks.until_due().await;
        let began = Instant::now();
        bell::ring(&file);
        looks.until_due().await;
        assert!(began.elapsed() < BETWEEN_LOOKS, "{:?}", began.elapsed());
        for _ in 0..100 {
            bell::ring(&file);
            looks.until_due().await;
        }
        let least = BETWEEN_LOOKS * (100 - LOOKS_AT_ONCE);
        assert!(began.elapsed() >= least, "{:?}", began.elapsed());
    }

    #[tokio::test]
    async fn a_file_that_has_taken_the_place_of_another_is_heard() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tasks.db-shm");
        let options = Options {
            poll_interval: HOUR,
            fallback_interval: HOUR,
            ..Options::default()
        };
        fs::write(&file, "").unwrap();
        let mut looks = Looks::new(&file, options);
        looks.until_due().await;
        fs::remove_file(&file).unwrap();
        fs::write(&file, "").unwrap();
        let heard = timeout(PATIENCE, looks.until_due()).await;
        heard.expect("that it was deleted");
        bell::ring(&file);
        let heard = timeout(PATIENCE, looks.until_due()).await;
        heard.expect("the new one");
    }
}
