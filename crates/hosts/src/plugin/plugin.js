// Written by `asyncagents setup opencode`, which also overwrites it: changes made here are lost.
//
// OpenCode loads this file into its own process. It starts `asyncagents opencode-bridge` and
// speaks JSON-RPC with it over its stdin and stdout, one message per line: tool calls and events
// go there, API requests come back. Everything is decided there; this file only carries.
import { spawn } from "node:child_process"

const PROGRAM = "__PROGRAM__"
const TOOLS = __TOOLS__
const VERSION = "__VERSION__"

/** What this file and the program speak; they may be of different age. */
const PROTOCOL = 1
/** The names of the tools are in this file, so the program is told how they begin. */
const BRIDGE = ["opencode-bridge", "-c", `tools.prefix=${TOOLS[0].name.replace(/task$/, "")}`]
/** How long a tool call waits for a bridge that is starting. */
const PATIENCE = 5_000
/** The bridge is started again after a pause, which doubles until one has lived for long. */
const FIRST_PAUSE = 500
const LONGEST_PAUSE = 30_000
const LONG_LIFE = 60_000
/** How long descriptions of tools are good for, and how long a model may wait for new ones. */
const FRESH = 5_000
const DESCRIBE = 5_000
/** Text that streams in is only a sign of life, and one in this time is enough. */
const DELTAS = 5_000
/** The bridge does not read longer lines. */
const LONGEST_LINE = 64 * 1024 * 1024

/** Every export is a plugin to OpenCode, so there is only this one. */
export const AsyncAgents = async ({ client, directory }) => {
  // All folders in one OpenCode share one bridge, and so do several copies of this file.
  const bridge = (globalThis[Symbol.for("asyncagents.bridge")] ??= makeBridge())
  // It is not waited for: OpenCode serves no request before this function is done.
  const instance = bridge.register(directory, client)
  const declare = ({ name, description, schema }) => {
    const execute = (args, ctx) => bridge.call(directory, name, args, ctx)
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

function makeBridge() {
  const program = process.env.ASYNCAGENTS_BIN || PROGRAM
  const instances = new Map() // by folder
  const waiting = new Map() // by the id of a request
  const deltas = new Map() // when each session last gave a sign of life
  let child // undefined between the end of one and the start of the next
  let trouble = "it does not answer"
  let wanted = new Set() // the types of event the bridge listens for
  let lastId = 0
  let pause = FIRST_PAUSE
  let restart

  function start() {
    restart = undefined
    if (!instances.size) return
    const began = Date.now()
    let stderr = ""
    let over = false
    const end = (why) => {
      if (over) return
      over = true
      child = undefined
      wanted = new Set()
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
      instances.forEach(greet)
    } catch (error) {
      failed(error)
    }
  }

  /** Writes to the child that is meant: the one that asked, not the one that came after it. */
  function write(to, message) {
    const line = JSON.stringify({ jsonrpc: "2.0", ...message }) + "\n"
    if (Buffer.byteLength(line) > LONGEST_LINE) throw new TooLong("this is too long to be passed on")
    to?.stdin.write(line)
    // One that reads no more would fill OpenCode's memory.
    if (to?.stdin.writableLength > LONGEST_LINE * 2) to.kill()
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
    if (method === "listen") wanted = new Set(params?.events)
    else if (method) quietly(answer)(from, id, method, params)
    else if (error) waiting.get(id)?.reject(new Error(error.message))
    else waiting.get(id)?.resolve(result)
  }

  async function answer(to, id, method, params) {
    try {
      if (method !== "api") throw new Error(`there is no method ${method}`)
      write(to, { id, result: await api(params) })
    } catch (error) {
      const message = error?.message || JSON.stringify(error) || "it failed"
      // Whoever asked can ask for less.
      if (error instanceof TooLong) write(to, { id, result: { status: 413, body: message } })
      else write(to, { id, error: { code: -32000, message } })
    }
  }

  async function api({ directory, method, path, query, body }) {
    const instance = instances.get(directory)
    if (!instance) throw new Error(`OpenCode has closed ${directory}`)
    const json = body === undefined ? {} : { body, headers: { "content-type": "application/json" } }
    const asked = { method, url: path, query: { ...query, directory }, parseAs: "text", ...json }
    const { data, error, response } = await instance.client._client.request(asked)
    if (!response) throw error
    const answered = response.status === 204 ? "" : (error ?? data ?? "")
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
    const { directory } = instance
    const began = Math.round(Date.now() - process.uptime() * 1000)
    const hello = { directory, pid: process.pid, began, opencode_plugin: PROTOCOL, version: VERSION }
    try {
      const { tools } = await request("hello", hello)
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

  return {
    /** The newer of two instances of one folder is the one that OpenCode uses. */
    register(directory, client) {
      const instance = { directory, client, asked: 0 }
      instances.set(directory, instance)
      expect(instance)
      if (child) greet(instance)
      else if (!restart) start()
      return instance
    },

    async call(directory, tool, args, { sessionID, messageID, callID, agent, abort }) {
      const late = () => {
        const help = "`asyncagents setup opencode --check` says what to do"
        throw new Error(`asyncagents cannot be reached: ${trouble}. ${help}.`)
      }
      const cancelled = new Promise((_, reject) => {
        const cancel = () => reject(new Error("cancelled"))
        if (abort?.aborted) cancel()
        abort?.addEventListener("abort", cancel, { once: true })
      })
      const closed = () => Promise.reject(new Error(`OpenCode has closed ${directory}`))
      await within(PATIENCE, [cancelled, instances.get(directory)?.ready ?? closed()], late)
      try {
        const call = { directory, sessionID, messageID, callID, agent, tool, args }
        const { output, title } = await request("call", call, abort)
        return { output, title: title ?? "", metadata: {} }
      } catch (error) {
        if (!(error instanceof Gone)) throw error
        const unknown = `whether the task was launched is not known; ${tool.replace(/_(task|skill)$/, "_list")} shows it`
        const then = /_(task|skill)$/.test(tool) ? unknown : "it can be called again"
        throw new Error(`asyncagents ended during the call (${error.message}): ${then}.`)
      }
    },

    event(instance, { type, properties }) {
      if (!wanted.has(type) || !current(instance)) return
      if (type === "message.part.delta") {
        const { sessionID } = properties
        if (Date.now() - (deltas.get(sessionID) ?? 0) < DELTAS) return
        if (deltas.size > 1_000) deltas.clear()
        deltas.set(sessionID, Date.now())
        properties = { sessionID }
      }
      tell("event", { directory: instance.directory, event: { type, properties } })
    },

    /** The tools as they are described now; as they were described last if that takes long. */
    tools(instance) {
      if (current(instance) && Date.now() - instance.asked > FRESH) {
        const { directory, ready, tools } = instance
        const asking = ready.then(() => request("tools", { directory })).then((answer) => answer.tools)
        // What got no answer is asked again for the next request.
        const late = () => ((instance.asked = 0), tools)
        instance.asked = Date.now()
        instance.tools = within(DESCRIBE, [asking], late).catch(late)
      }
      return instance.tools
    },

    dispose(instance) {
      if (!current(instance)) return
      instances.delete(instance.directory)
      tell("goodbye", { directory: instance.directory })
    },
  }
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
