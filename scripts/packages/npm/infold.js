#!/usr/bin/env node
// Runs the command of the package for this platform, with the same arguments, input, output and exit code.
'use strict'

const { spawn } = require('node:child_process')
const { constants } = require('node:os')

const name = `infold-${process.platform}-${process.arch}`
let command
try {
  command = require.resolve(`${name}/bin/infold`)
} catch {
  console.error(`error: there is no package of infold for this platform (${name})`)
  console.error('hint: `npm install infold` installs it beside this one, unless optional dependencies are left out')
  process.exit(2)
}

const child = spawn(command, process.argv.slice(2), { stdio: 'inherit' })
// A terminal sends its signals to both; what is sent to this process alone is passed on.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal))
child.on('error', (error) => {
  console.error(`error: ${command} cannot be run: ${error.message}`)
  process.exit(2)
})
child.on('exit', (code, signal) => process.exit(code ?? 128 + constants.signals[signal]))
