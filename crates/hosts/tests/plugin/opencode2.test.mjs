// The plugin as OpenCode 2 sees it. Run by tests/plugin.rs, which renders it.
import assert from "node:assert/strict"
import { mock, test } from "node:test"
import { again, bridges, fakeOpenCode2, load } from "./fakes.mjs"

const FOLDER = "/home/user/project"
const CHILD = "ses_asyncagents_1"
const KEEP_ALIVE = setInterval(() => {}, 1_000)

/** One story: a plugin in a new process, and a place where bridges appear. */
function story(name, tell) {
  test(name, { timeout: 30_000 }, async () => {
    const place = await bridges()
    const { setup } = await load()
    const cleanups = []
    const open = async (directory = FOLDER, sessions = { ses_1: {}, [CHILD]: {} }, begin = setup) => {
      const opencode = fakeOpenCode2(directory, sessions)
      opencode.close = await begin(opencode.ctx)
      cleanups.push(opencode.close)
      return opencode
    }
    /** A folder with a bridge that has welcomed it. */
    const opened = async (...how) => {
      const opencode = await open(...how)
      const bridge = await place.next()
      const hello = await bridge.welcome()
      return { opencode, bridge, hello }
    }
    /** The same with one that has no other way to OpenCode. */
    const relayed = async (...how) => {
      const opencode = await open(...how)
      const bridge = await place.next()
      bridge.say({ method: "follow", params: { events: ["session.deleted"] } })
      await bridge.welcome()
      return { opencode, bridge }
    }
    try {
      await tell({ place, open, opened, relayed, setup })
    } finally {
      for (const close of cleanups) await close()
      place.close()
      delete process.env.ASYNCAGENTS_BIN
    }
  })
}

story("OpenCode 1 calls setup too, which does nothing then", async ({ place, setup }) => {
  assert.equal(await setup({ options: {}, agent: {}, skill: {} }), undefined)
  assert.equal(await setup({ tool: {}, session: { prompt() {} } }), undefined)
  assert.equal(place.came.length, 0)
})

story("a child of asyncagents gets nothing from it", async ({ place, setup }) => {
  process.env.ASYNCAGENTS_CHILD = "1"
  try {
    const opencode = fakeOpenCode2(FOLDER, {})
    assert.equal(await setup(opencode.ctx), undefined)
    assert.deepEqual(opencode.tools, {})
    assert.equal(place.came.length, 0)
  } finally {
    delete process.env.ASYNCAGENTS_CHILD
  }
})

story("copies of the file have names of their own, and one has the same each time", async () => {
  const [one, other] = [await again(), await again()]
  assert.match(one.id, /^asyncagents\.\w+$/)
  assert.equal(one.id, other.id)
  assert.deepEqual(Object.keys(one), ["id", "server", "setup"])
})

story("the tools are declared without waiting for a bridge", async ({ open }) => {
  process.env.ASYNCAGENTS_BIN = "/nowhere/asyncagents"
  const { tools } = await open()
  assert.deepEqual(Object.keys(tools), ["asyncagents_task", "asyncagents_list"])
  const { input, options } = tools.asyncagents_task
  assert.deepEqual(options, { codemode: false })
  assert.deepEqual(input.required, ["prompt"])
})

story("an OpenCode that fails in setup does not see it fail", async ({ setup }) => {
  const broken = fakeOpenCode2(FOLDER)
  broken.ctx.tool.transform = async () => {
    throw new Error("no tools today")
  }
  const close = await setup(broken.ctx)
  await close()
})

story("a call is answered, and says whose it is", async ({ opened }) => {
  const { opencode, bridge, hello } = await opened()
  const { began, version, ...known } = hello
  assert.deepEqual(known, { generation: 2, pid: process.pid, opencode_plugin: 2 })
  const answer = opencode.call("asyncagents_task", { prompt: "look" })
  const call = await bridge.answer("call", { output: "done", title: "A task" })
  assert.deepEqual(call, {
    directory: FOLDER,
    sessionID: "ses_1",
    messageID: "msg_1",
    callID: "call_1",
    agent: "build",
    tool: "asyncagents_task",
    args: { prompt: "look" },
  })
  assert.deepEqual(await answer, { content: "done", metadata: { title: "A task" } })
  const failing = opencode.call("asyncagents_list")
  const { id } = await bridge.requested("call")
  bridge.say({ id, error: { code: -32000, message: "no, thank you" } })
  await assert.rejects(failing, { message: "no, thank you" })
})

story("a program that is not there is named", async ({ open }) => {
  process.env.ASYNCAGENTS_BIN = "/nowhere/asyncagents"
  const opencode = await open()
  await assert.rejects(opencode.call("asyncagents_list"), /there is no program \/nowhere\/asyncagents/)
})

story("a call of a session that is interrupted is cancelled", async ({ opened }) => {
  const { opencode, bridge } = await opened()
  const [stream] = opencode.streams
  for (const [type, data] of [
    ["session.execution.interrupted", { sessionID: "ses_1", reason: "user" }],
    ["session.tool.failed", { sessionID: "ses_1", id: "call_1" }],
  ]) {
    const answer = opencode.call("asyncagents_task")
    const { id } = await bridge.requested("call")
    stream.happens("session.execution.interrupted", { sessionID: "ses_other" })
    stream.happens("session.tool.failed", { sessionID: "ses_1", id: "call_other" })
    stream.happens(type, data)
    await assert.rejects(answer, { message: "cancelled" })
    assert.deepEqual((await bridge.requested("cancel")).params, { id })
  }
})

story("where OpenCode says when a call is over, it is believed", async ({ opened }) => {
  const { opencode, bridge } = await opened()
  const stop = new AbortController()
  const answer = opencode.call("asyncagents_task", {}, { signal: stop.signal })
  const { id } = await bridge.requested("call")
  opencode.streams[0].happens("session.execution.interrupted", { sessionID: "ses_1" })
  stop.abort()
  await assert.rejects(answer, { message: "cancelled" })
  assert.deepEqual((await bridge.requested("cancel")).params, { id })
})

story("folders share one bridge and one stream of events", async ({ place, open, opened }) => {
  const { opencode: here, bridge } = await opened()
  const there = await open("/elsewhere")
  assert.deepEqual([here.streams.length, there.streams.length], [1, 0])
  bridge.say({ method: "follow", params: { events: ["session.deleted"] } })
  const answer = there.call("asyncagents_task")
  assert.equal((await bridge.answer("call", { output: "there" })).directory, "/elsewhere")
  await answer
  here.streams[0].happens("session.deleted", { sessionID: "ses_1" })
  here.streams[0].happens("session.created", { sessionID: "ses_2" })
  const { params } = await bridge.hears(({ params }) => params?.event)
  assert.deepEqual(params, { event: { id: "evt_1", created: 1, type: "session.deleted", data: { sessionID: "ses_1" } } })

  // The folder that was listened through is closed: another one is, and something may be missed.
  bridge.heard.length = 0
  await here.close()
  assert.ok(here.streams[0].done)
  assert.deepEqual((await bridge.requested("event")).params, {})
  there.streams[0].happens("session.deleted", { sessionID: "ses_3" })
  assert.equal((await bridge.requested("event")).params.event.data.sessionID, "ses_3")
  assert.deepEqual(bridge.heard, [])
  await there.close()
  assert.deepEqual((await bridge.requested("goodbye")).params, {})
  assert.ok(there.streams[0].done)
  assert.equal(place.came.length, 1)
})

story("a stream that ends by itself is opened again", async ({ opened }) => {
  const { opencode, bridge } = await opened()
  await bridge.requested("event").catch(() => {})
  opencode.streams[0].end()
  assert.deepEqual((await bridge.requested("event")).params, {})
  assert.equal(opencode.streams.length, 2)
})

story("plugins that are loaded again do not cost a call its answer", async ({ open, opened }) => {
  const { opencode, bridge } = await opened()
  const answer = opencode.call("asyncagents_task")
  const { id } = await bridge.requested("call")
  await opencode.close()
  await bridge.requested("goodbye")
  const anew = await open()
  await bridge.welcome()
  bridge.say({ id, result: { output: "still here" } })
  assert.equal((await answer).content, "still here")
  const next = anew.call("asyncagents_list")
  await bridge.answer("call", { output: "same bridge" })
  assert.equal((await next).content, "same bridge")
})

story("a file of another version brings a bridge of its own, and the old one ends", async ({ place, open, opened }) => {
  const { opencode, bridge } = await opened()
  globalThis[Symbol.for("asyncagents.bridge.2")].made = "0.0.1 elsewhere"
  const running = opencode.call("asyncagents_task")
  const { id } = await bridge.requested("call")
  const anew = await open()
  const second = await place.next()
  await second.welcome()
  await opencode.close()
  bridge.say({ id, result: { output: "whole" } })
  assert.equal((await running).content, "whole")
  await bridge.over
  const next = anew.call("asyncagents_list")
  await second.answer("call", { output: "new" })
  assert.equal((await next).content, "new")
})

story("models see the tools as the bridge describes them, and never wait for one that is away", async ({ place, open }) => {
  const opencode = await open()
  const bridge = await place.next()
  await bridge.welcome()
  const first = opencode.shows("ses_1")
  const asked = await bridge.answer("tools", { tools: [{ name: "asyncagents_task", description: "live", schema: {} }] })
  assert.deepEqual(asked, { directory: FOLDER })
  const shown = await first
  assert.equal(shown.asyncagents_task.description, "live")
  assert.equal(shown.shell.description, "shell")
  bridge.end()
  await assert.rejects(opencode.call("asyncagents_list"))
  const began = Date.now()
  assert.equal((await opencode.shows("ses_1")).asyncagents_task.description, "live")
  assert.ok(Date.now() - began < 2_000)
})

story("a session of a task sees what the bridge lets it", async ({ opened }) => {
  const { opencode, bridge } = await opened()
  const first = opencode.shows(CHILD, ["shell", "edit", "asyncagents_task"])
  const asked = await bridge.answer("rules", { hidden: ["edit", "asyncagents_task"], guarded: true })
  assert.deepEqual(asked, { sessionID: CHILD, tools: ["shell", "edit", "asyncagents_task"] })
  await bridge.answer("tools", { tools: [] })
  assert.deepEqual(Object.keys(await first), ["shell"])
  // It is not asked again about the same tools, and what is new is hidden while it cannot say.
  assert.deepEqual(Object.keys(await opencode.shows(CHILD, ["shell", "edit"])), ["shell"])
  const second = opencode.shows(CHILD, ["shell", "mcp_new"])
  const { id } = await bridge.requested("rules")
  bridge.say({ id, error: { code: -32000, message: "not now" } })
  assert.deepEqual(Object.keys(await second), ["shell"])
})

story("a subagent that a task's session starts is bound like it", async ({ opened }) => {
  const sessions = { ses_1: {}, [CHILD]: {}, ses_2: { parentID: "ses_1" }, ses_3: { parentID: "ses_4" }, ses_4: { parentID: CHILD } }
  const { opencode, bridge } = await opened(FOLDER, sessions)
  const bound = opencode.shows("ses_3")
  assert.equal((await bridge.answer("rules", { hidden: ["shell"], guarded: true })).sessionID, CHILD)
  await bridge.answer("tools", { tools: [] })
  assert.deepEqual(Object.keys(await bound), ["asyncagents_task"])
  assert.deepEqual(Object.keys(await opencode.shows("ses_2")), ["shell", "asyncagents_task"])
  await opencode.before("ses_2", "shell", {})
  const refused = opencode.before("ses_3", "shell", {})
  const { id, params } = await bridge.requested("permit")
  assert.equal(params.sessionID, CHILD)
  bridge.say({ id, error: { code: -32000, message: "not this" } })
  await assert.rejects(refused, { message: "not this" })
})

story("a session of which nobody can tell whose it is uses nothing while a task is guarded", async ({ opened }) => {
  const { opencode, bridge } = await opened()
  const others = async () => {
    assert.deepEqual(Object.keys(await opencode.shows("ses_1")), ["shell", "asyncagents_task"])
    await opencode.before("ses_1", "shell", {})
  }
  bridge.answer("tools", { tools: [] })
  await others()
  assert.deepEqual(Object.keys(await opencode.shows("ses_lost")), ["shell", "asyncagents_task"])
  await opencode.before("ses_lost", "shell", {})
  const bound = opencode.shows(CHILD)
  await bridge.answer("rules", { hidden: [], guarded: true })
  await bound
  // It could be a subagent of the one that is bound.
  assert.deepEqual(await opencode.shows("ses_lost"), {})
  await assert.rejects(opencode.before("ses_lost", "shell", {}), { _tag: "Session.NotFoundError" })
  await others()
})

story("without an answer a session of a task gets no tools, others keep theirs", async ({ open }) => {
  process.env.ASYNCAGENTS_BIN = "/nowhere/asyncagents"
  const opencode = await open()
  assert.deepEqual(Object.keys(await opencode.shows("ses_1")), ["shell", "asyncagents_task"])
  await opencode.before("ses_1", "shell", {})
  mock.timers.enable({ apis: ["setTimeout"] })
  try {
    let settled
    Promise.allSettled([opencode.shows(CHILD), opencode.before(CHILD, "shell", {})]).then((both) => (settled = both))
    let seconds = 0
    for (; !settled; seconds += 1) {
      await new Promise(setImmediate)
      mock.timers.tick(1_000)
    }
    const [shown, refused] = settled
    assert.ok(seconds > 50, "nobody waits for a task's session, so it has time")
    assert.deepEqual(shown.value, {})
    assert.match(refused.reason.message, /asyncagents cannot be reached/)
  } finally {
    mock.timers.reset()
  }
})

story("a session that nothing binds loses only our tools when the bridge cannot say", async ({ opened }) => {
  const { opencode, bridge } = await opened()
  const first = opencode.shows(CHILD, ["shell"])
  await bridge.answer("rules", { hidden: [], guarded: false })
  await bridge.answer("tools", { tools: [] })
  assert.deepEqual(Object.keys(await first), ["shell"])
  await opencode.before(CHILD, "shell", {})
  const second = opencode.shows(CHILD, ["shell", "mcp_new", "asyncagents_task"])
  const { id } = await bridge.requested("rules")
  bridge.say({ id, error: { code: -32000, message: "not now" } })
  assert.deepEqual(Object.keys(await second), ["shell", "mcp_new"])
})

story("calls of a bound session are permitted one by one", async ({ opened }) => {
  const { opencode, bridge } = await opened()
  const first = opencode.before(CHILD, "shell", { command: "git log" })
  const asked = await bridge.answer("permit", null)
  assert.deepEqual(asked, { sessionID: CHILD, directory: FOLDER, tool: "shell", input: { command: "git log" } })
  await first
})

story("the bridge calls what OpenCode gives to plugins, as far as it is on the list", async ({ opened }) => {
  const { opencode, bridge } = await opened()
  const ask = async (id, params) => {
    bridge.say({ id, method: "ask", params })
    return (await bridge.hears((message) => message.id === id && !message.method)).result
  }
  const get = (sessionID) => ({ method: "session.get", args: { sessionID } })
  assert.deepEqual(await ask(1, get("ses_1")), { value: { id: "ses_1", location: { directory: FOLDER } } })
  const tag = "Session.NotFoundError"
  assert.deepEqual(await ask(2, get("ses_9")), { error: { tag, message: tag } })
  assert.deepEqual(await ask(3, { method: "session.synthetic", args: { sessionID: "ses_1" } }), {})
  for (const method of ["session.generate", "session.context", "tool.hook", "constructor.constructor"]) {
    assert.deepEqual(await ask(4, { method, args: {} }), { unknown: true }, method)
  }
  const list = { method: "agent.list", args: {}, directory: FOLDER }
  assert.equal((await ask(5, list)).value.location.directory, FOLDER)
  await opencode.close()
  bridge.say({ id: 6, method: "ask", params: get("ses_1") })
  assert.match((await bridge.hears(({ id, error }) => id === 6 && error)).error.message, /closed all folders/)
})

/** What this becomes, once it is as it should be. */
async function until(look, is) {
  for (;;) {
    const seen = await look()
    if (is(seen)) return seen
  }
}

/** Another copy of the plugin, in an OpenCode that says when a session is idle. */
async function setupWith(ctx, wait) {
  ctx.session.wait = wait
  return (await again()).setup(ctx)
}

/** What the bridge is told when it asks about a session. */
function asks(bridge, method) {
  let id = 100
  return async (sessionID) => {
    const mine = ++id
    bridge.say({ id: mine, method, params: { sessionID } })
    return (await bridge.hears((message) => message.id === mine && !message.method)).result
  }
}

story("nothing is kept of conversations where the bridge can read them", async ({ place, opened }) => {
  const { opencode, bridge } = await opened()
  const [shown, delivered] = [asks(bridge, "shown"), asks(bridge, "delivered")]
  bridge.answer("tools", { tools: [] })
  await opencode.shows("ses_1")
  opencode.streams[0].happens("session.inbox.delivered", { sessionID: CHILD, inboxID: "msg_1" })
  assert.deepEqual(await shown("ses_1"), {})
  assert.deepEqual(await delivered(CHILD), { messages: [] })
  // The next bridge has no other way.
  bridge.end()
  const next = await place.next()
  next.say({ method: "follow", params: { events: ["session.deleted"] } })
  await next.welcome()
  next.answer("tools", { tools: [] })
  await until(async () => (await opencode.shows("ses_1"), asks(next, "shown")("ses_1")), ({ messages }) => messages)
})

story("what was kept before there was a bridge is dropped if it is not needed", async ({ place, open }) => {
  const opencode = await open()
  await opencode.shows("ses_1")
  const bridge = await place.next()
  await bridge.welcome()
  await until(() => asks(bridge, "shown")("ses_1"), ({ messages }) => !messages)
})

story("what was delivered to a task is known to the next bridge", async ({ place, relayed }) => {
  const { opencode, bridge } = await relayed()
  const [stream] = opencode.streams
  for (const [sessionID, inboxID] of [[CHILD, "msg_1"], ["ses_1", "msg_2"], [CHILD, "msg_3"]])
    stream.happens("session.inbox.delivered", { sessionID, inboxID })
  await until(() => asks(bridge, "delivered")(CHILD), ({ messages }) => messages.length === 2)
  bridge.end()
  const next = await place.next()
  next.say({ method: "follow", params: { events: ["session.deleted"] } })
  await next.welcome()
  assert.deepEqual(await asks(next, "delivered")(CHILD), { messages: ["msg_1", "msg_3"] })
  assert.deepEqual(await asks(next, "delivered")("ses_1"), { messages: [] })
})

story("what models were shown last is kept, of a few sessions", async ({ relayed }) => {
  const names = Array.from({ length: 55 }, (_, number) => `ses_${number}`)
  const { opencode, bridge } = await relayed(FOLDER, Object.fromEntries(names.map((name) => [name, {}])))
  bridge.answer("tools", { tools: [] })
  for (const name of names) await opencode.shows(name)
  const shown = async (id, sessionID) => {
    bridge.say({ id, method: "shown", params: { sessionID } })
    return (await bridge.hears((message) => message.id === id && !message.method)).result
  }
  assert.deepEqual(await shown(1, "ses_54"), { messages: ["ses_54"], events: [] })
  assert.deepEqual(await shown(2, "ses_5"), { messages: ["ses_5"], events: [] })
  assert.deepEqual(await shown(3, "ses_4"), {})
  // And what has happened since, but not how it grew.
  for (const type of ["session.text.delta", "session.text.ended"]) opencode.streams[0].happens(type, { sessionID: "ses_54" })
  const { events } = await until(() => shown(4, "ses_54"), ({ events }) => events.length)
  assert.deepEqual(events.map(({ type }) => type), ["session.text.ended"])
  bridge.answer("tools", { tools: [] })
  await opencode.shows("ses_54")
  assert.deepEqual((await shown(5, "ses_54")).events, [])
})

story("the plugin knows who is at work, also after plugins were loaded again", async ({ open, opened }) => {
  const { opencode, bridge } = await opened()
  const busy = async (id = 1) => {
    bridge.say({ id, method: "busy", params: null })
    return (await bridge.hears((message) => message.id === id && !message.method)).result.sessions
  }
  const is = (...sessions) => (busy) => busy.join() === sessions.join()
  bridge.answer("tools", { tools: [] })
  await opencode.shows("ses_1")
  assert.deepEqual(await busy(), ["ses_1"])
  opencode.streams[0].happens("session.execution.started", { sessionID: "ses_2" })
  opencode.streams[0].happens("session.execution.succeeded", { sessionID: "ses_1" })
  await until(busy, is("ses_2"))
  opencode.streams[0].happens("session.execution.started", { sessionID: "ses_1" })
  await until(busy, is("ses_2", "ses_1"))
  // One of them ends while nobody listens.
  await opencode.close()
  const ends = new Promise(() => {})
  const wait = ({ sessionID }) => (sessionID === "ses_1" ? Promise.resolve() : ends)
  const anew = await open(FOLDER, undefined, (ctx) => setupWith(ctx, wait))
  await bridge.welcome()
  await until(busy, is("ses_2"))
  anew.streams[0].happens("session.execution.failed", { sessionID: "ses_2" })
  await until(busy, is())
})

test("the end", () => clearInterval(KEEP_ALIVE))
