// An OpenCode and a bridge to put the plugin between.
import { createServer } from "node:net"
import { EventEmitter, once } from "node:events"

export const KEY = Symbol.for("asyncagents.bridge.2")
let loads = 0

/** The plugin as a new process would load it. */
export async function load() {
  delete globalThis[KEY]
  return again()
}

/** Another copy of the plugin, in the same process. */
export async function again() {
  return (await import(`${process.env.PLUGIN}?${++loads}`)).default
}

/** OpenCode's client: answers with what `respond` gives, and remembers what it was asked. */
export function fakeClient(respond = () => ({ data: "{}" })) {
  const asked = []
  const request = async (options) => {
    asked.push(options)
    const { status = 200, headers = {}, ...rest } = await respond(options)
    return { request: {}, response: { status, headers: new Headers(headers) }, ...rest }
  }
  return { asked, _client: { request } }
}

/** What an OpenCode 2 gives to the plugin for a folder. Its sessions are the test's to fill. */
export function fakeOpenCode2(directory, sessions = {}) {
  const [tools, hooks, asked, streams] = [{}, {}, [], []]
  const session = (name) => async (args) => {
    asked.push([name, args])
    const found = sessions[args.sessionID]
    if (!found) throw Object.assign(new Error(), { _tag: "Session.NotFoundError" })
    return name === "get" ? { id: args.sessionID, location: { directory }, ...found } : undefined
  }
  const subscribe = () => {
    const [events, waiting] = [[], []]
    const push = (item) => (waiting.length ? waiting.shift()(item) : events.push(item))
    const stream = { happens: (type, data) => push({ value: { id: "evt_1", created: 1, type, data } }), done: false }
    stream.end = () => ((stream.done = true), push({ done: true }))
    streams.push(stream)
    const next = () => (events.length ? events.shift() : new Promise((resolve) => waiting.push(resolve)))
    return { [Symbol.asyncIterator]: () => ({ next: async () => next(), return: async () => stream.end() }) }
  }
  const hook = async (name, run) => ((hooks[name] = run), { dispose() {} })
  const ctx = {
    app: { name: "cli", version: "2" },
    session: { hook, prompt: session("prompt"), get: session("get"), synthetic: session("synthetic"), generate: session("generate") },
    tool: { hook, transform: async (change) => change({ add: (tool) => (tools[tool.name] = tool) }) },
    agent: { list: async () => ({ location: { directory }, data: [] }) },
    event: { subscribe },
  }
  /** The tools that a model is shown. */
  const shows = async (sessionID, names = ["shell", "asyncagents_task"]) => {
    const shown = Object.fromEntries(names.map((name) => [name, { description: name, input: {} }]))
    await hooks.context({ sessionID, agent: "build", messages: [sessionID], tools: shown })
    return shown
  }
  const call = (name, args = {}, more = {}) => {
    const at = { sessionID: "ses_1", messageID: "msg_1", id: "call_1", agent: "build", progress() {}, ...more }
    const answer = tools[name].execute(args, at)
    answer.catch(() => {})
    return answer
  }
  const before = (sessionID, tool, input) => hooks["execute.before"]({ sessionID, tool, input, id: "call_1" })
  return { ctx, tools, asked, sessions, streams, shows, call, before }
}

/** What OpenCode tells a tool about its call. */
export function context(more = {}) {
  const abort = new AbortController()
  const who = { sessionID: "ses_1", messageID: "msg_1", callID: "call_1", agent: "build" }
  return { stop: () => abort.abort(), ...who, abort: abort.signal, ...more }
}

/** Where bridges appear: each connection is one run of the program. */
export async function bridges() {
  const server = createServer()
  const waiting = []
  const came = []
  // A story that fails must not keep the process alive.
  server.unref()
  server.on("connection", (socket) => {
    socket.unref()
    const bridge = new Bridge(socket)
    came.push(bridge)
    waiting.shift()?.(bridge)
  })
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  process.env.BRIDGE_PORT = server.address().port
  let handed = 0
  return {
    came,
    /** The next bridge, when it is there. */
    next: () =>
      new Promise((resolve) => {
        if (came.length > handed) resolve(came[handed])
        else waiting.push(resolve)
        handed += 1
      }),
    close: () => {
      server.close()
      came.forEach((bridge) => bridge.end())
    },
  }
}

/** A bridge whose every word is the test's. */
class Bridge {
  #socket
  #heard = []
  #changed = new EventEmitter()

  constructor(socket) {
    this.#socket = socket
    this.over = once(socket, "end")
    this.over.catch(() => {})
    this.#changed.setMaxListeners(0)
    let text = ""
    socket.setEncoding("utf8").on("error", () => {})
    socket.on("data", (more) => {
      const lines = (text + more).split("\n")
      text = lines.pop()
      this.#heard.push(...lines.map((line) => JSON.parse(line)))
      this.#changed.emit("heard")
    })
  }

  /** All messages so far that nobody took. */
  get heard() {
    return this.#heard
  }

  /** Takes the first message that is like this, when it is there. */
  async hears(like) {
    for (;;) {
      const index = this.#heard.findIndex(like)
      if (index >= 0) return this.#heard.splice(index, 1)[0]
      await once(this.#changed, "heard")
    }
  }

  requested = (method) => this.hears((message) => message.method === method)

  say = (message) => this.#socket.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\n")

  write = (text) => this.#socket.write(text)

  /** Takes the next request of this kind and answers it. */
  async answer(method, result) {
    const { id, params } = await this.requested(method)
    this.say({ id, result })
    return params
  }

  /** Welcomes an instance. */
  welcome = (tools = []) => this.answer("hello", { tools, version: "0.0.0" })

  /** Asks for something of OpenCode's API. */
  async api(id, params) {
    this.say({ id, method: "api", params })
    return this.hears((message) => message.id === id && !message.method)
  }

  /** The program ends. */
  end = () => this.#socket.end()
}
