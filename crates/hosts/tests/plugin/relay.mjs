#!/usr/bin/env node
// Plays the program that the plugin starts: it only connects the plugin with the test, which is
// the bridge itself. When the test hangs up, the program ends.
import { connect } from "node:net"

if (process.argv[2] !== "opencode-bridge") process.exit(2)
const end = (error) => {
  process.stderr.write(`the test hung up ${error?.code ?? ""}\n`)
  process.exitCode = 3
  process.stdin.destroy()
}
const test = connect(Number(process.env.BRIDGE_PORT), "127.0.0.1")
test.on("error", end)
test.on("end", end)
process.stdin.pipe(test)
test.pipe(process.stdout)
