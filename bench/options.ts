import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import { type Case, CASES } from './cases.ts'
import { type Contestant, PEERS, PLANT_STORE_MAP, PROGRAM_METRICS } from './contestants.ts'
import type { Settings } from './measure.ts'
import type { Wire } from './report/table.ts'
import { STORE_CASES } from './store-cases.ts'

export interface Options extends Settings {
  readonly help: boolean
  readonly wire: Wire
  readonly json: boolean
  readonly rounds: number
  readonly cases: readonly Case[]
  /** The names of the optional contestants to run. */
  readonly against: ReadonlySet<string>
  /** Contestants specified by the paths of their files, for example in another checkout. */
  readonly externalContestants: readonly Contestant[]
  /** The Node versions to run on. If empty, the benchmark runs on the current version. */
  readonly nodeVersions: readonly string[]
}

const caseNames = CASES.map(({ name }) => name)
const storeCaseNames = STORE_CASES.map(({ name }) => name)
const peerNames = PEERS.map(({ name }) => name)
const optionalNames = [...peerNames, PLANT_STORE_MAP.name, PROGRAM_METRICS.name]

/** Formats names as lines of at most 95 characters, indented to line up with the descriptions in the help. */
function formatNames(names: readonly string[]): string {
  return names
    .join(', ')
    .replace(/(.{1,95})(?: |$)/g, `$1\n${' '.repeat(24)}`)
    .trimEnd()
}

export const HELP = `Usage: npm run bench -- [options]

Measures the CPU time per request. Each contestant runs in its own process; all of them take turns, in several rounds.

  --case <names>        cases to run (default: all cases without a database):
                        ${formatNames(caseNames)}
                        cases with a database, which run only if they are named:
                        ${formatNames(storeCaseNames)}
                        "stores": all cases with a database
                        "processes": 1, 2 and 4 server processes on one port; not with any other case or option
  --against <names>     additional contestants:
                        ${formatNames(optionalNames)}
                        "peers": all of these except the last two
                        a file, such as ../before/bench/contestants/plant-store.js: a contestant of another checkout
  --wire <kind>         "socket", or "memory" to bypass the kernel and detect small differences: the client runs in the
                        process of the server, and each contestant gets a new process in each round (default: socket)
  --connections <n>     keep-alive connections (default: 64)
  --pipelining <n>      requests that a connection sends before it waits for a response (default: 1)
  --duration <seconds>  how long each contestant is measured in a round (default: 2); in memory, at most 80,000 requests
  --rounds <n>          maximum number of rounds (default: 15); after 9 rounds, the benchmark stops if the 95 % interval
                        of each CPU time ratio is narrower than 3 % of the ratio, or 2 % in memory
  --node <versions>     Node versions to run on, such as 24,26; they are downloaded from npm
  --profile <folder>    writes a CPU profile of each server to the folder
  --json                prints all rounds as JSON instead of tables: an array with one element per Node version
  --help                prints this help

Separate names with commas.`

/** @throws TypeError if an option is invalid; the message names the option and the values that it accepts */
export function parseOptions(args: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      help: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
      case: { type: 'string', default: caseNames.join() },
      against: { type: 'string', default: '' },
      wire: { type: 'string', default: 'socket' },
      connections: { type: 'string', default: '64' },
      pipelining: { type: 'string', default: '1' },
      duration: { type: 'string', default: '2' },
      rounds: { type: 'string', default: '15' },
      node: { type: 'string', default: '' },
      profile: { type: 'string' },
    },
  })
  const cases = new Set(parseNames('case', values.case, [...caseNames, 'stores', ...storeCaseNames]))
  if (cases.has('stores')) for (const name of storeCaseNames) cases.add(name)
  const { wire, pipelining, profile } = values
  if (wire !== 'socket' && wire !== 'memory') throw new TypeError(`--wire must be socket or memory, not "${wire}"`)
  if (wire === 'memory') {
    const storeCase = storeCaseNames.find((name) => cases.has(name))
    const conflict = pipelining !== '1' ? '--pipelining' : profile !== undefined ? '--profile' : storeCase
    if (conflict !== undefined) throw new TypeError(`--wire memory can't be combined with ${conflict}`)
  }
  const contestantFiles = values.against.split(',').filter((name) => name.endsWith('.js'))
  const contestantNames = values.against.split(',').filter((name) => !contestantFiles.includes(name))
  const against = parseNames('against', contestantNames.join(), ['peers', ...optionalNames])
  return {
    help: values.help,
    wire,
    externalContestants: contestantFiles.map((file) => ({ name: file, file: pathToFileURL(resolve(file)).href })),
    json: values.json,
    cases: [...CASES, ...STORE_CASES].filter(({ name }) => cases.has(name)),
    against: new Set(against.flatMap((name) => (name === 'peers' ? peerNames : name))),
    connections: parsePositiveInteger('connections', values.connections),
    pipelining: parsePositiveInteger('pipelining', pipelining),
    duration: parsePositiveNumber('duration', values.duration),
    rounds: parsePositiveInteger('rounds', values.rounds),
    nodeVersions: parseVersions(values.node),
    profileDirectory: profile,
  }
}

function parseNames(option: string, text: string, allowed: readonly string[]): string[] {
  const given = text.split(',').filter((name) => name !== '')
  const invalid = given.find((name) => !allowed.includes(name))
  if (invalid !== undefined) throw new TypeError(`--${option} must be one of ${allowed.join(', ')}, not "${invalid}"`)
  return given
}

function parseVersions(text: string): string[] {
  const given = text.split(',').filter((version) => version !== '')
  const invalid = given.find((version) => !/^\d+(\.\d+){0,2}$/.test(version))
  if (invalid !== undefined) throw new TypeError(`--node must be a list of versions such as 24,26.1, not "${invalid}"`)
  return given
}

function parsePositiveNumber(option: string, text: string): number {
  const value = Number(text)
  if (!(value > 0 && value < Infinity))
    throw new TypeError(`--${option} must be a number greater than 0, not "${text}"`)
  return value
}

function parsePositiveInteger(option: string, text: string): number {
  const value = parsePositiveNumber(option, text)
  if (!Number.isInteger(value)) throw new TypeError(`--${option} must be an integer, not "${text}"`)
  return value
}
