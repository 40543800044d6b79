// An OpenCode that makes one call and is done. It does not ask its process to exit.
import { context, fakeClient, load } from "./fakes.mjs"

const client = fakeClient(({ method, url, query, body }) => ({
  data: JSON.stringify({ method, url, query, body }),
  headers: { "x-next-cursor": "next" },
}))
const { server } = await load()
const alive = setInterval(() => {}, 1_000)
const hooks = await server({ client, directory: "/home/user/project" })
const idle = { type: "session.idle", properties: { sessionID: "ses_1" } }
const tool = hooks.tool.asyncagents_task
const first = await tool.execute({ prompt: "look" }, context())
await hooks.event({ event: idle })
await hooks.event({ event: { type: "unwanted", properties: {} } })
const part = { id: "prt_1", sessionID: "ses_1", messageID: "msg_1", type: "tool", tool: "bash" }
const state = { status: "completed", input: { command: "ls" }, output: "a long result", metadata: {} }
await hooks.event({ event: { type: "message.part.updated", properties: { sessionID: "ses_1", part: { ...part, state } } } })
const output = {}
await hooks["tool.definition"]({ toolID: "asyncagents_task" }, output)
const failed = await tool.execute({ prompt: "fail" }, context()).catch((error) => error.message)
const second = await tool.execute({ prompt: "last" }, context())
clearInterval(alive)
process.stdout.write(JSON.stringify({ first, failed, second, definition: output }))
