// An OpenCode and a bridge to put the plugin between.
import { createServer } from "node:net"
import { EventEmitter, once } from "node:events"

export const KEY = Symbol.for("asyncagents.bridge")
let loads = 0

/** The plugin as a new process would load it. */
export async function load() {
  delete globalThis[KEY]
  return again()
}

/** Another copy of the plugin, in the same process. */
export async function again() {
  return (await import(`${process.env.PLUGIN}?${++loads}`)).AsyncAgents
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
