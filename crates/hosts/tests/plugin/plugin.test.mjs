// The plugin as OpenCode sees it. Run by tests/plugin.rs, which renders it.
import assert from "node:assert/strict"
import { mock, test } from "node:test"
import { again, bridges, context, fakeClient, load } from "./fakes.mjs"

const FOLDER = "/home/user/project"
const KEEP_ALIVE = setInterval(() => {}, 1_000)

/** One story: a plugin in a new process, and a place where bridges appear. */
function story(name, tell) {
  test(name, { timeout: 30_000 }, async () => {
    const place = await bridges()
    const { server } = await load()
    const hooks = []
    const init = async (client = fakeClient(), directory = FOLDER, begin = server) => {
      const made = await begin({ client, directory })
      hooks.push(made)
      return made
    }
    try {
      await tell({ place, init })
    } finally {
      for (const made of hooks) await made.dispose()
      place.close()
      delete process.env.ASYNCAGENTS_BIN
    }
  })
}

/** A call, and the promise that it is answered, which may fail unobserved. */
function calling(hooks, args = {}, ctx = context(), tool = "asyncagents_task") {
  const answer = hooks.tool[tool].execute(args, ctx)
  answer.catch(() => {})
  return answer
}

story("a child of asyncagents gets nothing from it", async ({ place, init }) => {
  process.env.ASYNCAGENTS_CHILD = "1"
  try {
    const client = fakeClient()
    const { server } = await again()
    assert.deepEqual(await server({ client, directory: FOLDER }), {})
    assert.equal(place.came.length, 0)
  } finally {
    delete process.env.ASYNCAGENTS_CHILD
  }
})

story("the tools are declared at once, without a bridge", async ({ init }) => {
  const { tool } = await init()
  assert.deepEqual(Object.keys(tool), ["asyncagents_task", "asyncagents_list"])
  const { description, args } = tool.asyncagents_task
  assert.equal(description, "Launches a task, \"quoted\" and in $& `ticks`.")
  assert.deepEqual(args, { prompt: { type: "string" }, agent: { type: "string" } })
})

story("a call is answered, and says whose it is", async ({ place, init }) => {
  const hooks = await init()
  const answer = calling(hooks, { prompt: "hé\u2028llo" })
  const bridge = await place.next()
  const hello = await bridge.welcome()
  const { began, version, ...known } = hello
  assert.deepEqual(known, { directory: FOLDER, generation: 1, pid: process.pid, opencode_plugin: 2 })
  assert.match(version, /^\d+\.\d+\.\d+/)
  assert.ok(Number.isInteger(began) && began <= Date.now(), `${began} is no moment of the past`)
  const params = await bridge.answer("call", { output: "done", title: "A task" })
  assert.deepEqual(params, {
    directory: FOLDER,
    sessionID: "ses_1",
    messageID: "msg_1",
    callID: "call_1",
    agent: "build",
    tool: "asyncagents_task",
    args: { prompt: "hé\u2028llo" },
  })
  assert.deepEqual(await answer, { output: "done", title: "A task", metadata: {} })
})

story("an error of the bridge is the tool's error", async ({ place, init }) => {
  const hooks = await init()
  const answer = calling(hooks)
  const bridge = await place.next()
  await bridge.welcome()
  const { id } = await bridge.requested("call")
  bridge.say({ id, error: { code: -32000, message: "`prompt` is missing" } })
  await assert.rejects(answer, { message: "`prompt` is missing" })
})

story("api requests are served by OpenCode's client", async ({ place, init }) => {
  const answers = {
    "/list": { data: '[{"a":1}]', headers: { "x-next-cursor": "abc" } },
    "/missing": { error: { name: "NotFoundError" }, status: 404 },
    "/done": { data: {}, status: 204 },
  }
  const client = fakeClient(({ url }) => {
    if (url === "/broken") throw new Error("socket hang up")
    return answers[url]
  })
  await init(client)
  const bridge = await place.next()
  await bridge.welcome()
  const api = async (id, method, path, more) =>
    bridge.api(id, { directory: FOLDER, method, path, query: { limit: "1" }, ...more })

  const list = await api(1, "GET", "/list")
  assert.deepEqual(list.result, { status: 200, body: '[{"a":1}]', next: "abc" })
  const query = { limit: "1", directory: FOLDER }
  assert.deepEqual(client.asked.at(-1), { method: "GET", url: "/list", query, parseAs: "text" })

  const missing = await api(2, "GET", "/missing")
  assert.deepEqual(missing.result, { status: 404, body: '{"name":"NotFoundError"}' })

  const done = await api(3, "POST", "/done", { body: { parts: [] } })
  assert.deepEqual(done.result, { status: 204, body: "" })
  const { body, headers } = client.asked.at(-1)
  assert.deepEqual(body, { parts: [] })
  assert.equal(headers["content-type"], "application/json")

  const broken = await api(4, "GET", "/broken")
  assert.match(broken.error.message, /socket hang up/)
  const elsewhere = await bridge.api(5, { directory: "/other", method: "GET", path: "/list" })
  assert.match(elsewhere.error.message, /closed \/other/)
  bridge.say({ id: 6, method: "dance" })
  const dance = await bridge.hears(({ id }) => id === 6)
  assert.match(dance.error.message, /no method dance/)
})

story("a bridge that is alive and does not answer is replaced", async ({ place, init }) => {
  mock.timers.enable({ apis: ["setInterval"] })
  try {
    const hooks = await init()
    const list = calling(hooks, {}, context(), "asyncagents_list")
    const first = await place.next()
    await first.welcome()
    // It answers, though it does not know the word: it is of an older version.
    for (let times = 0; times < 4; times += 1) {
      mock.timers.tick(30_000)
      const { id } = await first.requested("ping")
      first.say({ id, error: { code: -32601, message: "there is no method ping" } })
      await first.api(times, { directory: FOLDER, method: "GET", path: "/list" })
    }
    mock.timers.tick(30_000)
    await first.requested("ping")
    mock.timers.tick(30_000)
    await first.requested("ping")
    mock.timers.tick(30_000)
    await assert.rejects(list, /asyncagents ended during the call \(it did not answer\): it can be called again/)
    const second = await place.next()
    await second.welcome()
    const again = calling(hooks, {}, context(), "asyncagents_list")
    await second.answer("call", { output: "none" })
    assert.equal((await again).output, "none")
  } finally {
    mock.timers.reset()
  }
})

story("a bridge that dies costs the call in flight, and is started again", async ({ place, init }) => {
  let release
  const client = fakeClient(() => new Promise((resolve) => (release = () => resolve({ data: "late" }))))
  const hooks = await init(client)
  const [task, list] = [calling(hooks), calling(hooks, {}, context(), "asyncagents_list")]
  const first = await place.next()
  await first.welcome()
  await first.requested("call")
  await first.requested("call")
  first.say({ id: 1, method: "api", params: { directory: FOLDER, method: "GET", path: "/slow" } })
  first.write("{not json}\n\n")
  await first.end()
  await assert.rejects(task, {
    message:
      "asyncagents ended during the call (it ended with code 3: the test hung up): " +
      "whether the task was launched is not known; asyncagents_list shows it.",
  })
  await assert.rejects(list, /it can be called again/)

  const second = await place.next()
  const hello = await second.welcome()
  assert.equal(hello.directory, FOLDER)
  // What the first one asked is not answered to the second, which counts from one again.
  release()
  const answer = calling(hooks)
  await second.answer("call", { output: "again" })
  assert.equal((await answer).output, "again")
  assert.deepEqual(second.heard, [])
})

story("a call waits for a bridge that is starting", async ({ place, init }) => {
  const hooks = await init()
  const bridge = await place.next()
  const answer = calling(hooks)
  const { id } = await bridge.requested("hello")
  assert.deepEqual(bridge.heard, [])
  bridge.say({ id, result: { tools: [] } })
  await bridge.answer("call", { output: "there" })
  assert.equal((await answer).output, "there")
})

story("a program that is not there is named, soon enough", async ({ init }) => {
  process.env.ASYNCAGENTS_BIN = "/nowhere/asyncagents"
  const hooks = await init()
  const began = Date.now()
  await assert.rejects(calling(hooks), {
    message:
      "asyncagents cannot be reached: there is no program /nowhere/asyncagents. " +
      "`asyncagents setup opencode --check` says what to do.",
  })
  assert.ok(Date.now() - began < 7_000)
})

story("a program that ends at once is quoted", async ({ place, init }) => {
  place.close()
  const hooks = await init()
  await assert.rejects(calling(hooks), /it ended with code 3: the test hung up ECONNREFUSED/)
})

story("a bridge that refuses says why, without delay", async ({ place, init }) => {
  const hooks = await init()
  const bridge = await place.next()
  const { id } = await bridge.requested("hello")
  bridge.say({ id, error: { code: -32000, message: "the plugin is too old" } })
  await assert.rejects(calling(hooks), { message: "the plugin is too old" })
})

story("a second copy takes over the folder", async ({ place, init }) => {
  const [older, newer] = [fakeClient(), fakeClient()]
  const first = await init(older)
  const bridge = await place.next()
  await bridge.welcome()
  const second = await init(newer, FOLDER, (await again()).server)
  await bridge.welcome()
  bridge.say({ method: "listen", params: { events: ["session.idle"] } })
  await bridge.api(1, { directory: FOLDER, method: "GET", path: "/path" })
  assert.deepEqual([older.asked.length, newer.asked.length], [0, 1])

  const event = { type: "session.idle", properties: { sessionID: "ses_1" } }
  for (const hooks of [first, second]) await hooks.event({ event })
  await first.dispose()
  for (const hooks of [first, second]) {
    const answer = calling(hooks)
    await bridge.answer("call", { output: "same" })
    assert.equal((await answer).output, "same")
  }
  assert.deepEqual(bridge.heard, [{ jsonrpc: "2.0", method: "event", params: { directory: FOLDER, event } }])
  assert.equal(place.came.length, 1)
})

story("two folders share one bridge", async ({ place, init }) => {
  const here = await init()
  const there = await init(fakeClient(), "/elsewhere")
  const bridge = await place.next()
  const hellos = [await bridge.welcome(), await bridge.welcome()]
  assert.deepEqual(hellos.map((hello) => hello.directory), [FOLDER, "/elsewhere"])
  await there.dispose()
  assert.deepEqual((await bridge.requested("goodbye")).params, { directory: "/elsewhere" })
  await assert.rejects(calling(there), /closed \/elsewhere/)
  const answer = calling(here)
  await bridge.answer("call", { output: "here" })
  await answer
  assert.equal(place.came.length, 1)
})

story("an abort cancels the waiting; one afterwards means nothing", async ({ place, init }) => {
  const hooks = await init()
  const bridge = await place.next()
  await bridge.welcome()
  const [stopped, whole] = [context(), context()]
  const answer = calling(hooks, {}, stopped)
  const { id } = await bridge.requested("call")
  stopped.stop()
  await assert.rejects(answer, { message: "cancelled" })
  assert.deepEqual((await bridge.requested("cancel")).params, { id })
  // An answer that comes too late does no harm.
  bridge.say({ id, result: { output: "late" } })

  const other = calling(hooks, {}, whole)
  await bridge.answer("call", { output: "whole" })
  await other
  whole.stop()
  await assert.rejects(calling(hooks, {}, whole), { message: "cancelled" })
  const last = calling(hooks)
  await bridge.answer("call", { output: "last" })
  await last
  assert.deepEqual(bridge.heard, [])
})

story("an abort ends the wait for a bridge that is starting", async ({ place, init }) => {
  const hooks = await init()
  const ctx = context()
  const answer = calling(hooks, {}, ctx)
  ctx.stop()
  await assert.rejects(answer, { message: "cancelled" })
  const bridge = await place.next()
  await bridge.welcome()
  assert.deepEqual(bridge.heard, [])
})

story("models see the tools as the bridge describes them", async ({ place, init }) => {
  const hooks = await init()
  const define = async (toolID) => {
    const output = { description: "", parameters: {}, jsonSchema: undefined }
    await hooks["tool.definition"]({ toolID }, output)
    return output
  }
  const bridge = await place.next()
  // It does not answer yet: the models need not wait for ever.
  const { description, jsonSchema } = await define("asyncagents_task")
  assert.match(description, /^Launches/)
  assert.deepEqual(jsonSchema.required, ["prompt"])
  assert.deepEqual(await define("bash"), { description: "", parameters: {}, jsonSchema: undefined })

  const schema = { type: "object", properties: {} }
  await bridge.welcome([{ name: "asyncagents_task", description: "live", schema }])
  const answer = calling(hooks)
  await bridge.answer("call", { output: "" })
  await answer
  assert.deepEqual(await define("asyncagents_task"), { description: "live", parameters: {}, jsonSchema: schema })
  assert.match((await define("asyncagents_list")).description, /^Lists/)
})

story("only events that are wanted are passed on, and few of those that stream", async ({ place, init }) => {
  const hooks = await init()
  const bridge = await place.next()
  const happens = (type, properties) => hooks.event({ event: { id: "evt_1", type, properties } })
  const delta = (sessionID) => happens("message.part.delta", { sessionID, delta: "x", partID: "prt_1" })
  await happens("session.idle", { sessionID: "ses_0" })
  bridge.say({ method: "listen", params: { events: ["session.idle", "message.part.delta"] } })
  await bridge.welcome()
  const answer = calling(hooks)
  await bridge.answer("call", { output: "" })
  await answer

  await happens("session.idle", { sessionID: "ses_1" })
  await happens("lsp.updated", {})
  for (const session of ["ses_1", "ses_1", "ses_2", "ses_1"]) await delta(session)
  await happens("session.idle", { sessionID: "ses_2" })
  // What cannot be written is nobody's trouble.
  await happens("session.idle", { sessionID: 1n })
  await hooks.event({})
  await happens("session.idle", { sessionID: "last" })
  await bridge.hears(({ params }) => params?.event?.properties.sessionID === "last")
  assert.deepEqual(
    bridge.heard.map(({ params }) => [params.event.type, params.event.properties]),
    [
      ["session.idle", { sessionID: "ses_1" }],
      ["message.part.delta", { sessionID: "ses_1" }],
      ["message.part.delta", { sessionID: "ses_2" }],
      ["session.idle", { sessionID: "ses_2" }],
    ],
  )
})

story("long messages pass, and one that is too long is refused", async ({ place, init }) => {
  const client = fakeClient(({ url }) => ({ data: "é".repeat(Number(url.slice(1))) }))
  const hooks = await init(client)
  const bridge = await place.next()
  await bridge.welcome()
  const api = (id, length) => bridge.api(id, { directory: FOLDER, method: "GET", path: `/${length}` })
  assert.equal((await api(1, 3_000_000)).result.body.length, 3_000_000)
  assert.equal((await api(2, 40_000_000)).result.status, 413)
  const answer = calling(hooks)
  const output = "ü".repeat(3_000_000)
  await bridge.answer("call", { output })
  assert.equal((await answer).output, output)
})

test("the end", () => clearInterval(KEEP_ALIVE))
