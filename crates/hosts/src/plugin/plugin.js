// Written by `asyncagents setup opencode`, which also overwrites it: changes made here are lost.
//
// OpenCode loads this file into its own process: OpenCode 1 calls `server`, OpenCode 2 `setup`. It
// starts `asyncagents opencode-bridge` and speaks JSON-RPC with it over its stdin and stdout, one
// message per line: tool calls and events go there, API requests come back. Everything is decided
// there; this file only carries.
import { spawn } from "node:child_process"

const PROGRAM = "__PROGRAM__"
const TOOLS = __TOOLS__
const VERSION = "__VERSION__"

/** What this file and the program speak; they may be of different age. */
const PROTOCOL = 2
/** The names of the tools are in this file, so the program is told how they begin. */
const BRIDGE = ["opencode-bridge", "-c", `tools.prefix=${TOOLS[0].name.replace(/task$/, "")}`]
/** How long a tool call waits for a bridge that is starting. */
const PATIENCE = 5_000
/** The bridge is started again after a pause, which doubles until one has lived for long. */
const FIRST_PAUSE = 500
const LONGEST_PAUSE = 30_000
const LONG_LIFE = 60_000
/** How often the bridge is asked whether it is there; one that did not answer twice is replaced. */
const PING = 30_000
/** How many times one may be silent that starts: it may have to bring a large database up to date. */
const STARTING = 20
/** How long descriptions of tools are good for, and how long a model may wait for new ones. */
const FRESH = 5_000
const DESCRIBE = 5_000
/** How long a session of a task may wait to be told what it may use: nobody waits for it. */
const CHECK = 120_000
/** Text that streams in is only a sign of life, and one in this time is enough. */
const DELTAS = 5_000
/** The bridge does not read longer lines. */
const LONGEST_LINE = 64 * 1024 * 1024
/** In OpenCode 2 the sessions of tasks have names that begin like this. */
const CHILD = "ses_asyncagents_"
/** Of so many sessions it is kept what their models were shown last, and so many events since. */
const SHOWN = 50
const EVENTS = 1_000
/** Events of what grows: it is told in whole at its end. */
const GROWS = /\.(delta|progress)$/
/** What the bridge may call of what OpenCode 2 gives to plugins. Not all of it is in every version. */
const METHODS = new Set(
  ["create", "get", "prompt", "synthetic", "interrupt", "context", "switchAgent", "switchModel", "remove"]
    .map((name) => `session.${name}`)
    .concat("agent.list"),
)

/** Every export is a plugin to OpenCode, so there is only this one. */
export default { id: `asyncagents.${digest(import.meta.url.split("?")[0])}`, server, setup }

/** All folders in one OpenCode share one bridge, and so do several copies of this file. */
const KEY = Symbol.for("asyncagents.bridge.2")
const shared = () => (globalThis[KEY] ??= makeBridge())

// An OpenCode that is a child of asyncagents has its tools from the worker, and gets none here.

/** OpenCode 1. */
async function server({ client, directory }) {
  if (process.env.ASYNCAGENTS_CHILD) return {}
  const bridge = shared()
  // It is not waited for: OpenCode serves no request before this function is done.
  const instance = bridge.register(directory, client)
  const declare = ({ name, description, schema }) => {
    const execute = async (args, ctx) => {
      const { output, title } = await bridge.call(directory, { directory, tool: name, args, ...ctx })
      return { output, title: title ?? "", metadata: {} }
    }
    return [name, { description, args: schema?.properties ?? {}, execute }]
  }
  return {
    tool: Object.fromEntries(TOOLS.map(declare)),
    event: quietly(({ event }) => bridge.event(instance, event)),
    // OpenCode takes all declared arguments for required; the schema set here says it better.
    "tool.definition": quietly(async ({ toolID }, output) => {
      const named = ({ name }) => name === toolID
      const declared = TOOLS.find(named)
      if (!declared) return
      const tool = (await bridge.tools(instance))?.find(named) ?? declared
      output.description = tool.description
      output.jsonSchema = tool.schema
    }),
    dispose: quietly(() => bridge.dispose(instance)),
  }
}

/** OpenCode 2, which calls this for every folder and does nothing in it until this is done. */
async function setup(ctx) {
  if (process.env.ASYNCAGENTS_CHILD) return
  // OpenCode 1 calls it too, with less than this.
  if (!ctx?.tool?.transform || !ctx.session?.prompt) return
  // One of another version serves the folders that still have it.
  if (globalThis[KEY]?.made !== `${VERSION} ${PROGRAM}`) delete globalThis[KEY]
  const opencode = shared().opencode2(ctx)
  await quietly(async () => {
    await ctx.tool.transform((tools) => TOOLS.forEach((tool) => tools.add(opencode.declare(tool))))
    await ctx.session.hook("context", (request) => opencode.context(request))
    await ctx.tool.hook?.("execute.before", (call) => opencode.permit(call))
  })()
  return quietly(() => opencode.dispose())
}

function makeBridge() {
  const program = process.env.ASYNCAGENTS_BIN || PROGRAM
  const instances = new Map() // by folder; an OpenCode 2 is one for all of them
  const waiting = new Map() // by the id of a request
  const running = new Set() // calls
  const deltas = new Map() // when each session last gave a sign of life
  let child // undefined between the end of one and the start of the next
  let trouble = "it does not answer"
  let wanted = new Set() // the types of event the bridge listens for, of an OpenCode 1
  let followed = new Set() // and of an OpenCode 2
  let lastId = 0
  let pause = FIRST_PAUSE
  let restart

  function start() {
    restart = undefined
    if (!instances.size) return
    const began = Date.now()
    let stderr = ""
    let over = false
    let watch
    const end = (why) => {
      if (over) return
      over = true
      clearInterval(watch)
      child = undefined
      wanted = followed = new Set()
      trouble = stderr.trim() ? `${why}: ${stderr.trim()}` : why
      for (const { reject } of [...waiting.values()]) reject(new Gone(trouble))
      instances.forEach(expect)
      if (Date.now() - began > LONG_LIFE) pause = FIRST_PAUSE
      restart = unref(setTimeout(start, pause))
      pause = Math.min(pause * 2, LONGEST_PAUSE)
    }
    const failed = ({ code, message }) =>
      end(code === "ENOENT" ? `there is no program ${program}` : `${program} cannot be started: ${message}`)
    const ended = (code, signal) => end(`it ended with ${signal ?? `code ${code}`}`)
    try {
      const started = spawn(program, BRIDGE, { stdio: "pipe", windowsHide: true })
      started.on("error", (error) => started.pid === undefined && failed(error))
      // Its last words may come after its end, but something else may hold the pipe open.
      started.on("close", ended)
      started.on("exit", (...how) => unref(setTimeout(ended, 200, ...how)))
      const { stdin, stdout, stderr: words } = started
      for (const it of [started, stdin, stdout, words]) unref(it)
      // A pipe that breaks is not news: the end of the bridge is.
      for (const pipe of [stdin, stdout, words]) pipe.on("error", () => {})
      words.setEncoding("utf8").on("data", (text) => (stderr = (stderr + text).slice(-2_000)))
      stdout.setEncoding("utf8").on("data", lines((line) => receive(started, line)))
      child = started
      watch = unref(watching(started, end))
      instances.forEach(greet)
    } catch (error) {
      failed(error)
    }
  }

  /** A process that was stopped, or waits for a disk, does not end, and all that it does stands still. */
  function watching(started, end) {
    let unanswered = -STARTING
    let last = Date.now()
    const alive = () => (unanswered = 0)
    return setInterval(() => {
      // Then this process, or the machine, has slept as well.
      if (Date.now() - last > PING * 2) unanswered = Math.min(unanswered, 0)
      last = Date.now()
      if (unanswered === 2) return started.kill("SIGKILL"), end("it did not answer")
      unanswered += 1
      // An older one does not know the word, but it answers.
      request("ping", {}).then(alive, (error) => error instanceof Gone || alive())
    }, PING)
  }

  /** Writes to the child that is meant: the one that asked, not the one that came after it. */
  function write(to, message) {
    const line = JSON.stringify({ jsonrpc: "2.0", ...message }) + "\n"
    if (Buffer.byteLength(line) > LONGEST_LINE) throw new TooLong("this is too long to be passed on")
    to?.stdin.write(line)
    // One that reads no more would fill OpenCode's memory.
    if (to?.stdin.writableLength > LONGEST_LINE * 2) to.kill("SIGKILL")
  }

  function request(method, params, signal) {
    return new Promise((resolve, reject) => {
      if (!child) return reject(new Gone(trouble))
      const [id, asked] = [++lastId, child]
      const cancel = () => {
        waiting.get(id)?.reject(new Error("cancelled"))
        write(asked, { method: "cancel", params: { id } })
      }
      const settled = (settle) => (value) => {
        waiting.delete(id)
        // OpenCode aborts after every call; only an abort before its end means something.
        signal?.removeEventListener("abort", cancel)
        settle(value)
      }
      write(asked, { id, method, params })
      waiting.set(id, { resolve: settled(resolve), reject: settled(reject) })
      signal?.addEventListener("abort", cancel)
    })
  }

  function tell(method, params) {
    quietly(write)(child, { method, params })
  }

  function receive(from, line) {
    let message
    try {
      message = JSON.parse(line)
    } catch {
      return
    }
    const { id, method, params, result, error } = message ?? {}
    if (method && from !== child && id === undefined) return
    if (method === "listen") wanted = new Set(params?.events)
    else if (method === "follow") followed = new Set(params?.events)
    else if (method) quietly(answer)(from, id, method, params)
    else if (error) waiting.get(id)?.reject(new Error(error.message))
    else waiting.get(id)?.resolve(result)
  }

  async function answer(to, id, method, params) {
    try {
      const { ask, shown, delivered, busy } = opencode2
      const methods = { api, ask, shown, delivered, busy }
      if (!Object.hasOwn(methods, method)) throw new Error(`there is no method ${method}`)
      write(to, { id, result: await methods[method](params) })
    } catch (error) {
      const message = error?.message || JSON.stringify(error) || "it failed"
      // Whoever asked can ask for less.
      if (error instanceof TooLong) write(to, { id, result: { status: 413, body: message } })
      else write(to, { id, error: { code: -32000, message } })
    }
  }

  async function api({ directory, method, path, query, body, quiet }) {
    const instance = instances.get(directory)
    if (!instance) throw new Error(`OpenCode has closed ${directory}`)
    const json = body === undefined ? {} : { body, headers: { "content-type": "application/json" } }
    const asked = { method, url: path, query: { ...query, directory }, parseAs: "text", ...json }
    const { data, error, response } = await instance.client._client.request(asked)
    if (!response) throw error
    const unread = response.status === 204 || (quiet && response.ok)
    const answered = unread ? "" : (error ?? data ?? "")
    return {
      status: response.status,
      body: typeof answered === "string" ? answered : JSON.stringify(answered),
      next: response.headers.get("x-next-cursor") ?? undefined,
    }
  }

  /** From now on calls wait until the bridge knows the instance. */
  function expect(instance) {
    if (instance.pending) return
    instance.pending = true
    instance.ready = new Promise((resolve, reject) => Object.assign(instance, { resolve, reject }))
    instance.ready.catch(() => {})
  }

  async function greet(instance) {
    const { directory, generation } = instance
    const began = Math.round(Date.now() - process.uptime() * 1000)
    const hello = { directory, generation, pid: process.pid, began, opencode_plugin: PROTOCOL, version: VERSION }
    try {
      const { tools } = await request("hello", hello)
      if (generation === 2) opencode2.greeted(followed.size > 0)
      // They do not name the agents yet: OpenCode could not be asked.
      Object.assign(instance, { tools: Promise.resolve(tools), asked: 0, pending: false })
      trouble = "it does not answer"
      instance.resolve()
    } catch (error) {
      // One that ended says nothing about the next; one that refuses will do so again.
      if (error instanceof Gone) return
      instance.pending = false
      instance.reject(error)
    }
  }

  const current = (instance) => instances.get(instance.directory) === instance

  function add(instance) {
    instances.set(instance.directory, instance)
    expect(instance)
    if (child) greet(instance)
    else if (!restart) start()
    return instance
  }

  /** The bridge is left to those who need it: OpenCode closes a folder to open it again. */
  function remove(instance) {
    if (!instance || !current(instance)) return
    instances.delete(instance.directory)
    tell("goodbye", { directory: instance.directory })
    // Another has taken its place.
    if (!instances.size && globalThis[KEY] !== bridge) Promise.allSettled([...running]).then(() => child?.stdin.end())
  }

  /** Text that streams in is only a sign of life. */
  function isSign(sessionID) {
    if (Date.now() - (deltas.get(sessionID) ?? 0) < DELTAS) return false
    keep(deltas, 1_000, sessionID, Date.now())
    return true
  }

  /** The tools as they are described in a folder now; as they were described last if that takes long. */
  function described(instance, folder) {
    if (Date.now() - folder.asked > FRESH) {
      const { directory, tools } = folder
      const asking = instance.ready.then(() => request("tools", { directory })).then((answer) => answer.tools)
      // What got no answer is asked again for the next request.
      const late = () => ((folder.asked = 0), tools)
      folder.asked = Date.now()
      folder.tools = within(DESCRIBE, [asking], late).catch(late)
    }
    return folder.tools
  }

  const late = () => {
    const help = "`asyncagents setup opencode --check` says what to do"
    throw new Error(`asyncagents cannot be reached: ${trouble}. ${help}.`)
  }

  const bridge = {
    made: `${VERSION} ${PROGRAM}`,

    /** The newer of two instances of one folder is the one that OpenCode uses. */
    register: (directory, client) => add({ directory, client, generation: 1, asked: 0 }),

    /** A folder of an OpenCode 2. */
    opencode2: (ctx) => opencode2.folder(ctx),

    async call(folder, { directory, tool, args, sessionID, messageID, callID, agent, abort }) {
      const cancelled = new Promise((_, reject) => {
        const cancel = () => reject(new Error("cancelled"))
        if (abort?.aborted) cancel()
        abort?.addEventListener("abort", cancel, { once: true })
      })
      const closed = () => Promise.reject(new Error(`OpenCode has closed ${directory}`))
      await within(PATIENCE, [cancelled, instances.get(folder)?.ready ?? closed()], late)
      const answer = request("call", { directory, sessionID, messageID, callID, agent, tool, args }, abort)
      running.add(answer)
      try {
        return await answer
      } catch (error) {
        if (!(error instanceof Gone)) throw error
        const unknown = `whether the task was launched is not known; ${tool.replace(/_(task|skill)$/, "_list")} shows it`
        const then = /_(task|skill)$/.test(tool) ? unknown : "it can be called again"
        throw new Error(`asyncagents ended during the call (${error.message}): ${then}.`)
      } finally {
        running.delete(answer)
      }
    },

    event(instance, { type, properties }) {
      if (!wanted.has(type) || !current(instance)) return
      if (type === "message.part.delta") {
        const { sessionID } = properties
        if (!isSign(sessionID)) return
        properties = { sessionID }
      }
      tell("event", { directory: instance.directory, event: { type, properties: brief(type, properties) } })
    },

    tools: (instance) => (current(instance) ? described(instance, instance) : instance.tools),

    dispose: remove,
  }

  const opencode2 = makeOpenCode2({
    bridge,
    add,
    remove,
    described,
    isUp: () => child !== undefined,
    request: (instance, time, method, params) => {
      if (!instance) return late()
      // One that ended says nothing; the next one is asked.
      const ended = (error) => (error instanceof Gone ? ask() : Promise.reject(error))
      const ask = () => instance.ready.then(() => request(method, params)).catch(ended)
      return within(time, [ask()], late)
    },
    event(type, event) {
      if (!followed.has(type)) return
      const { sessionID } = event.data ?? {}
      const grows = GROWS.test(type)
      if (grows && !isSign(sessionID)) return
      tell("event", { event: grows ? { type, data: { sessionID } } : event })
    },
    missed: () => tell("event", {}),
  })
  return bridge
}

/** What the bridge looks at. Texts and results may be long, and would be in the way of answers. */
function brief(type, properties) {
  const { sessionID, info, part } = properties ?? {}
  if (type === "message.updated" && info) return { sessionID, info: { id: info.id, sessionID: info.sessionID } }
  if (type !== "message.part.updated" || !part) return properties
  const { id, type: kind, tool, state, cost, tokens } = part
  const known = state && { status: state.status, input: state.input }
  return { sessionID, part: { id, sessionID: part.sessionID, type: kind, tool, state: known, cost, tokens } }
}

/** The bridge ended, or is not there. */
class Gone extends Error {}

class TooLong extends Error {}

/** What the first of these becomes, or what `late` says when that takes too long. */
function within(time, these, late) {
  let timer
  const over = new Promise((resolve) => (timer = setTimeout(resolve, time))).then(late)
  return Promise.race([...these, over]).finally(() => clearTimeout(timer))
}

/** Sets a value in a map of so many at most: the one that was set first gives way. */
function keep(map, most, key, value) {
  map.delete(key)
  map.set(key, value)
  if (map.size > most) map.delete(map.keys().next().value)
}

/** A short name for a text. */
function digest(text) {
  let hash = 0
  for (const char of text) hash = (hash * 31 + char.codePointAt(0)) >>> 0
  return hash.toString(36)
}

/** Text as lines, however it was cut. */
function lines(each) {
  let line = []
  return (text) => {
    const [end, ...others] = text.split("\n")
    line.push(end)
    for (const next of others) {
      each(line.join(""))
      line = [next]
    }
  }
}

/** OpenCode never sees it fail. */
function quietly(work) {
  return async (...given) => {
    try {
      return await work(...given)
    } catch {}
  }
}

/** It does not keep OpenCode from exiting. */
function unref(it) {
  it?.unref?.()
  return it
}
