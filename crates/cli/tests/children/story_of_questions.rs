//! What an agent wants to know of its user.

use asyncagents_scripted_model::{Reply, Script};
use serde_json::json;

use crate::{
    agent::Agent,
    world::{World, asked, printed},
};

told! {
    for (claude Claude, claude_alone ClaudeAlone, codex Codex):
    a_form_is_answered_from_the_shell
}

/// A server of the user's with a tool that asks for a colour.
const ASKER: &str = r#"
import { createInterface } from "node:readline";
const send = (message) => console.log(JSON.stringify({ jsonrpc: "2.0", ...message }));
const schema = { type: "object", required: ["colour"],
  properties: { colour: { type: "string", enum: ["Red", "Blue"] } } };
let call;
createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params, result } = JSON.parse(line);
  if (method === "initialize") {
    const { protocolVersion } = params;
    send({ id, result: { protocolVersion, capabilities: { tools: {} },
      serverInfo: { name: "asker", version: "1" } } });
  } else if (method === "tools/list") {
    send({ id, result: { tools: [{ name: "ask", description: "Asks for a colour",
      inputSchema: { type: "object", properties: {} } }] } });
  } else if (method === "tools/call") {
    call = id;
    send({ id: "asked", method: "elicitation/create",
      params: { message: "Which colour?", requestedSchema: schema } });
  } else if (id === "asked") {
    send({ id: call, result: { content: [{ type: "text",
      text: `the answer: ${result?.content?.colour}` }] } });
  } else if (method && id !== undefined) {
    send({ id, result: {} });
  }
});
"#;

mod tell {
    use super::*;

    pub(super) fn a_form_is_answered_from_the_shell(agent: Agent) {
        let asks = match agent {
            Agent::Codex => Reply::call("mcp__asker/ask", json!({})),
            _ => {
                let options = json!([{"label": "Red", "description": "warm"},
                    {"label": "Blue", "description": "cold"}]);
                let question = json!({"question": "Which colour?", "header": "Colour",
                    "multiSelect": false, "options": options});
                Reply::call("AskUserQuestion", json!({"questions": [question]}))
            }
        };
        let script = |_: &_| {
            Script::new()
                .rule(printed("Blue"), Reply::text("It is blue."))
                .rule(asked("Paint it"), asks)
        };
        let Some(world) = World::new(agent, script) else {
            return;
        };
        if agent == Agent::Codex {
            // In our sandbox it answers its servers itself: it is in a mode in which nobody is asked.
            world.set("[hosts.codex]\nsandbox = false\n");
            world.home.write("home/asker.mjs", ASKER);
            let settings = world.home.path("home/.codex/config.toml");
            let known = std::fs::read_to_string(settings).expect("settings");
            let server = format!(
                "[mcp_servers.asker]\ncommand = {:?}\nargs = [{:?}]\n",
                world.home.path("bin/node"),
                world.home.path("home/asker.mjs")
            );
            world
                .home
                .write("home/.codex/config.toml", &format!("{known}{server}"));
        }
        let id = world.launch_free("Paint it");
        let question = world.question(&id);
        let task = world.task(&id);
        let asked = &task["progress"]["questions"][0];
        assert_eq!(asked["text"], "Which colour?", "{asked}");
        let field = &asked["fields"][0];
        assert_eq!(field["options"], json!(["Red", "Blue"]), "{asked}");
        let key = field["key"].as_str().expect("a key");
        let value = format!("{key}=Blue");
        let answer = ["answer", &id, "--value", &value, "--question", &question];
        let done = world.asyncagents(&answer);
        assert!(matches!(done.code, Some(0 | 3)), "{done:?}");
        assert_eq!(world.result(&id), "It is blue.");
    }
}
