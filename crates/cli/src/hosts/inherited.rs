//! Whose conversation a fork from a shell inherits.

use anyhow::anyhow;
use asyncagents_core::port::{HostError, Store, query};
use asyncagents_runtime::Problem;

use super::ShellLaunch;
use crate::{
    exit::{Failure, no_session},
    make_visible::make_visible,
    print,
};

/// The session that the user has named, or the newest run in a folder. It is said which one that is.
pub(super) async fn choose_parent(
    store: &dyn Store,
    folder: &str,
    launch: &mut ShellLaunch<'_>,
) -> Result<(), Failure> {
    if !launch.request.fork {
        return Ok(());
    }
    let named = launch.is_session_named.then(|| launch.session.clone());
    let (folder, wanted) = (folder.to_owned(), named.clone());
    let found = query(store, move |journal| match &wanted {
        Some(id) => journal.session(id),
        None => journal.newest_session(&folder),
    });
    let found = found.await.map_err(Problem::from)?;
    let parent = found.ok_or_else(|| match named {
        Some(id) => no_session(HostError::NoSession(id)),
        None => Failure::Input(anyhow!(
            "there is no session in this folder to inherit; `asyncagents run` begins one, and \
             --session names another"
        )),
    })?;
    let title = make_visible(&parent.title);
    print::remark(&format!("inherits {} \"{title}\"\n", parent.id));
    launch.session = parent.id;
    Ok(())
}
