//! `asyncagents demo`: an agent and its background sub-agents, offline.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
};

use anyhow::{Context, anyhow};
use asyncagents_scripted_model::{ModelServer, Script};

use super::{
    CommandContext,
    run::{Wanted, go},
    runtime::in_two_threads,
};
use crate::{
    config::Loaded,
    exit::{Exit, Failure},
    print,
    trust::Sealed,
};

/// Watch an agent with background sub-agents work, offline, in a temporary folder.
///
/// Needs no key and no network: a scripted model answers on a loopback port, over the real
/// protocol. Everything else is real: the tools, the sandbox, the store, the forks. Your
/// settings are ignored.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Example:\n  asyncagents demo --keep demo")]
pub(super) struct DemoArgs {
    /// Keep everything in this folder: the project, the database, and every request to the model.
    #[arg(long, value_name = "FOLDER")]
    keep: Option<PathBuf>,
}

/// The answers of the model.
const SCRIPT: &str = include_str!("../demo/script.toml");

/// The project that is worked on.
const SHOP: &[(&str, &str)] = &[
    ("README.md", include_str!("../demo/shop/README.md")),
    ("cart.sh", include_str!("../demo/shop/cart.sh")),
    ("test.sh", include_str!("../demo/shop/test.sh")),
];

/// What the scripted model would cost if it were a real one of middle size.
const PRICES: &str = include_str!("../demo/prices.json");

const PROMPT: &str = "Get this little shop ready for release: find out what is broken, have it \
    fixed, and write down what changes.";

pub(super) fn run(args: &DemoArgs) -> Result<Exit, Failure> {
    let temporary = match args.keep {
        Some(_) => None,
        None => Some(tempfile::tempdir().map_err(|error| Failure::Machine(error.into()))?),
    };
    let folder = match (&args.keep, &temporary) {
        (Some(folder), _) => empty(folder).map_err(Failure::Input)?,
        (None, Some(folder)) => folder.path().to_owned(),
        (None, None) => PathBuf::new(),
    };
    in_two_threads(play(&folder, args.keep.is_some()))
}

/// A folder of the user's, which must not hold anything.
fn empty(folder: &Path) -> anyhow::Result<PathBuf> {
    let name = folder.display().to_string();
    fs::create_dir_all(folder).with_context(|| name.clone())?;
    let mut files = fs::read_dir(folder).with_context(|| name.clone())?;
    if files.next().is_some() {
        return Err(anyhow!(
            "{name} is not empty; --keep needs a folder of its own"
        ));
    }
    folder.canonicalize().context(name)
}

async fn play(folder: &Path, keep: bool) -> Result<Exit, Failure> {
    let machine = |error: std::io::Error| Failure::Machine(error.into());
    let shop = folder.join("shop");
    fs::create_dir(&shop).map_err(machine)?;
    for (name, text) in SHOP {
        fs::write(shop.join(name), text).map_err(machine)?;
    }
    let prices = folder.join("prices.json");
    fs::write(&prices, PRICES).map_err(machine)?;
    let script = Script::parse(SCRIPT).map_err(|error| Failure::Machine(error.into()))?;
    let model = ModelServer::start(script).await.map_err(machine)?;
    let flags = [
        ("db", folder.join("asyncagents.db").display().to_string()),
        ("model", "demo/scripted".to_owned()),
        ("providers.demo.base_url", model.url()),
        ("providers.demo.wire", "anthropic".to_owned()),
        ("models.prices", prices.display().to_string()),
        ("permissions.mode", "yolo".to_owned()),
        ("worker.autostart", "false".to_owned()),
    ];
    let flags = flags.map(|(key, value)| (key.to_owned(), value)).to_vec();
    // The demo is the same whatever the user has set.
    let loaded = Loaded::only(&flags).map_err(Failure::Input)?;
    let context = CommandContext::new(&loaded, flags, &[])?;
    print::remark(&format!(
        "A demo: no key, no network. A scripted model answers at {}; the rest is real.\n\
         The project is a copy in {}.\n\n> {PROMPT}\n\n",
        model.url(),
        shop.display(),
    ));
    let wanted = Wanted {
        prompt: Some(PROMPT.to_owned()),
        folder: Some(shop.clone()),
        sealed: if keep {
            Sealed::ByUser
        } else {
            Sealed::ByProcess
        },
        ..Wanted::default()
    };
    let exit = go(&context, wanted).await?;
    if exit == Exit::Done && !shop.join("CHANGES.md").exists() {
        return Err(Failure::Machine(anyhow!(
            "the demo did not come to its end; `asyncagents demo --keep FOLDER` keeps what happened"
        )));
    }
    if keep {
        keep_requests(folder, &model).map_err(machine)?;
        print::remark(&format!(
            "\nKept in {}: the project, the database, and in requests.jsonl what the model got.\n\
             asyncagents list --db {}\n",
            folder.display(),
            folder.join("asyncagents.db").display(),
        ));
    }
    print::remark(
        "\nNext:\n  \
         asyncagents run \"What does this folder do?\"   with ANTHROPIC_API_KEY or OPENAI_API_KEY, or --model ollama/NAME\n  \
         asyncagents task --follow \"Count the tests\"   a background task from the shell\n  \
         asyncagents config                            everything that can be set\n",
    );
    Ok(exit)
}

/// What the model got, a line of JSON for each request.
fn keep_requests(folder: &Path, model: &ModelServer) -> std::io::Result<()> {
    let mut file = fs::File::create(folder.join("requests.jsonl"))?;
    for request in model.requests() {
        file.write_all(request.body.trim().as_bytes())?;
        file.write_all(b"\n")?;
    }
    Ok(())
}
