
/** An OpenCode 2: one instance of the bridge, whatever folders it has. */
function makeOpenCode2({ bridge, add, remove, described, isUp, request, event, missed }) {
  const contexts = new Map() // what OpenCode gave for each folder, and which folder, once that is known
  const folders = new Map() // how tools are described there
  const owners = new Map() // by session: the task's session that it is or descends from
  const rules = new Map() // by session of a task
  const shown = new Map() // by session: what its model was shown last, and the events since
  const delivered = new Map() // by session of a task: the names of what was put into its history
  const busy = new Set() // the sessions that are at work
  const calls = new Set() // those that OpenCode does not tell when they are interrupted
  let keeps = true // unless the bridge has other ways to know what is kept here
  let instance
  let stream

  async function folderOf(ctx, sessionID) {
    const { location } = await ctx.session.get({ sessionID })
    if (contexts.has(ctx)) contexts.set(ctx, location.directory)
    return location.directory
  }

  async function owner(ctx, sessionID) {
    if (sessionID.startsWith(CHILD)) return sessionID
    if (!owners.has(sessionID)) {
      const { parentID } = await ctx.session.get({ sessionID })
      keep(owners, 1_000, sessionID, parentID && (await owner(ctx, parentID)))
    }
    return owners.get(sessionID)
  }

  /** Whose rules bind a session. While calls of a task are guarded, one that cannot be told is refused. */
  async function boundBy(ctx, sessionID) {
    try {
      return await owner(ctx, sessionID)
    } catch (error) {
      if ([...rules.values()].some(({ guarded }) => guarded)) throw error
    }
  }

  async function describe(ctx, sessionID, tools) {
    const directory = await folderOf(ctx, sessionID)
    const folder = folders.get(directory) ?? { directory, asked: 0 }
    keep(folders, 100, directory, folder)
    const news = instance && isUp() ? await described(instance, folder) : await folder.tools
    for (const { name, description } of news ?? []) if (tools[name]) tools[name].description = description
  }

  /** What a session of a task may not use is not shown to it; nothing is shown if that is not known. */
  async function narrow(ctx, sessionID, tools) {
    const names = Object.keys(tools)
    let session
    try {
      session = await boundBy(ctx, sessionID)
    } catch {
      for (const name of names) delete tools[name]
    }
    if (!session) return
    let known = rules.get(session)
    if (!names.every((name) => known?.seen.has(name))) {
      try {
        const { hidden, guarded } = await request(instance, CHECK, "rules", { sessionID: session, tools: names })
        known = { seen: new Set(names), hidden: new Set(hidden), guarded }
        keep(rules, 1_000, session, known)
      } catch {}
    }
    const isOurs = (name) => TOOLS.some((tool) => tool.name === name)
    const isNew = (name) => !known.seen.has(name) && (known.guarded || isOurs(name))
    for (const name of names) if (!known || known.hidden.has(name) || isNew(name)) delete tools[name]
  }

  async function execute(ctx, tool, args, { sessionID, messageID, id, agent, signal }) {
    const stop = new AbortController()
    const call = { sessionID, id, cancel: () => stop.abort() }
    if (!signal) calls.add(call)
    try {
      const directory = await folderOf(ctx, sessionID)
      const who = { sessionID, messageID, callID: id, agent, abort: signal ?? stop.signal }
      const { output, title } = await bridge.call(undefined, { directory, tool, args, ...who })
      return { content: output, metadata: title ? { title } : {} }
    } finally {
      calls.delete(call)
    }
  }

  /** Hears the events of all folders through one of them. */
  function listen() {
    const [ctx] = contexts.keys()
    if (stream || !ctx) return
    const stop = new AbortController()
    const events = ctx.event.subscribe({ signal: stop.signal })[Symbol.asyncIterator]()
    const mine = (stream = { ctx, end: () => (stop.abort(), events.return?.()) })
    missed()
    // Whoever has ended meanwhile is idle now.
    for (const sessionID of busy) quietly(async () => (await ctx.session.wait({ sessionID }), busy.delete(sessionID)))()
    const hear = async () => {
      for (let next; !(next = await events.next()).done; ) quietly(happened)(next.value)
    }
    quietly(hear)().then(() => {
      if (stream !== mine) return
      stream = undefined
      unref(setTimeout(quietly(listen), FIRST_PAUSE))
    })
  }

  function happened({ id, created, type, data }) {
    const ends = { "session.execution.interrupted": () => true, "session.tool.failed": (call) => call.id === data.id }
    for (const call of calls) if (call.sessionID === data?.sessionID && ends[type]?.(call)) call.cancel()
    if (type === "session.execution.started") busy.add(data?.sessionID)
    else if (/^session\.(execution\.\w+|deleted)$/.test(type)) busy.delete(data?.sessionID)
    const since = shown.get(data?.sessionID)?.events
    if (since?.length < EVENTS && !GROWS.test(type)) since.push({ id, created, type, data })
    if (keeps && type === "session.inbox.delivered" && data?.sessionID?.startsWith(CHILD)) {
      const names = [...(delivered.get(data.sessionID) ?? []), data.inboxID]
      keep(delivered, 1_000, data.sessionID, names.slice(-EVENTS))
    }
    event(type, { id, created, type, data })
  }

  return {
    folder(ctx) {
      contexts.set(ctx, undefined)
      instance ??= add({ generation: 2, asked: 0 })
      quietly(listen)()
      return {
        declare: ({ name, description, schema }) => ({
          name,
          description,
          input: schema ?? { type: "object", properties: {} },
          // Otherwise models reach it only by writing a program.
          options: { codemode: false },
          execute: (args, at) => execute(ctx, name, args, at),
        }),

        async context({ sessionID, messages, tools }) {
          if (keeps) keep(shown, SHOWN, sessionID, { messages, events: [] })
          busy.add(sessionID)
          await Promise.all([quietly(narrow)(ctx, sessionID, tools), quietly(describe)(ctx, sessionID, tools)])
        },

        /** Throws if a call may not be made. */
        async permit({ sessionID, tool, input }) {
          const session = await boundBy(ctx, sessionID)
          const known = session && rules.get(session)
          const isOffered = known?.seen.has(tool) && !known.hidden.has(tool)
          if (!session || (isOffered && !known.guarded)) return
          const directory = await folderOf(ctx, sessionID)
          await request(instance, CHECK, "permit", { sessionID: session, directory, tool, input })
        },

        dispose() {
          contexts.delete(ctx)
          if (stream?.ctx === ctx) {
            quietly(stream.end)()
            stream = undefined
            quietly(listen)()
          }
          if (contexts.size) return
          remove(instance)
          instance = undefined
        },
      }
    },

    async ask({ method, args, directory }) {
      const all = [...contexts]
      const [ctx] = all.find(([, folder]) => directory !== undefined && folder === directory) ?? all[0] ?? []
      if (!ctx) throw new Error("OpenCode has closed all folders")
      const [part, name] = METHODS.has(method) ? method.split(".") : []
      if (typeof ctx[part]?.[name] !== "function") return { unknown: true }
      try {
        return { value: await ctx[part][name](args) }
      } catch (error) {
        const tag = error?._tag ?? ""
        return { error: { tag, message: error?.message || tag || "it failed" } }
      }
    },

    shown: ({ sessionID }) => shown.get(sessionID) ?? {},

    delivered: ({ sessionID }) => ({ messages: delivered.get(sessionID) ?? [] }),

    /** Whether the bridge hears of sessions only from here: it may be another bridge that asks. */
    greeted(isFollowed) {
      keeps = isFollowed
      if (keeps) return
      shown.clear()
      delivered.clear()
    },

    busy: () => ({ sessions: [...busy] }),
  }
}
