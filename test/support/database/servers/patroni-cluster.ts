import type { ChildProcess } from 'node:child_process'
import { chownSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { bin, makeFolder, processesOf, query, run, signalAll, startProcess, user } from '../../wire/debian-servers.ts'
import type { Scope } from '../../child.ts'
import { blocksOf, readDocument } from '../../package/documents.ts'
import { freePort } from '../../wire/free-port.ts'
import { listening } from '../../wire/listening.ts'
import { openTcpProxy, type TcpProxy } from '../../wire/tcp-proxy.ts'

const NAMES = ['node1', 'node2', 'node3'] as const

/** The last configuration of a language that the document shows, with machines that are all this one. */
function configuration(language: string) {
  const { code } = blocksOf(readDocument('docs/postgres-servers.md'), language).at(-1)!
  return code.replaceAll('10.0.0.0/24', '127.0.0.0/16').replaceAll('10.0.0.', '127.0.1.')
}

/** A machine of the cluster: etcd, Patroni and PostgreSQL. */
export class Machine {
  readonly name: string
  readonly #t: Scope
  readonly #folder: string
  /** Between Patroni and etcd. */
  readonly etcd: TcpProxy
  #patroni: ChildProcess | undefined

  constructor(t: Scope, name: string, folder: string, etcd: TcpProxy) {
    this.name = name
    this.#t = t
    this.#folder = folder
    this.etcd = etcd
    const data = join(folder, 'data')
    const text = configuration('yaml')
      .replaceAll('127.0.1.1:8008', `${this.host}:8008`)
      .replaceAll('127.0.1.1:5432', `${this.host}:5432`)
      .replace('name: node1', `name: ${name}`)
      .replace(/^ {2}hosts: .*$/m, `  hosts: 127.0.0.1:${etcd.port}\n  use_proxies: true`)
      .replace(/^ {2}data_dir: .*$/m, `  data_dir: ${data}`)
      .replace(/^ {2}bin_dir: .*$/m, `  bin_dir: ${bin}\n  parameters:\n    unix_socket_directories: ${folder}`)
      .replace('mode: required', 'mode: "off"')
    writeFileSync(join(folder, 'patroni.yml'), text)
    t.after(() => this.kill())
  }

  get host(): string {
    return `127.0.1.${this.name.slice(-1)}`
  }

  /** Asks its server, which may be away. */
  query<R extends object>(text: string): Promise<R[]> {
    return query(`postgres://postgres:a-password@${this.host}:5432/plants`, text)
  }

  start(): void {
    this.#patroni = startProcess(this.#t, '/usr/bin/patroni', [join(this.#folder, 'patroni.yml')], this.#folder)
  }

  /** Ends the process of the server, which takes its sessions with it. */
  killServer(): void {
    signalAll(this.#serverPids().slice(0, 1), 'SIGKILL')
  }

  /** Ends everything at once. */
  kill(): void {
    this.#patroni?.kill('SIGKILL')
    signalAll(this.#serverPids(), 'SIGKILL')
  }

  freeze(): void {
    this.#patroni!.kill('SIGSTOP')
    signalAll(this.#serverPids(), 'SIGSTOP')
  }

  thaw(): void {
    signalAll(this.#serverPids(), 'SIGCONT')
    this.#patroni!.kill('SIGCONT')
  }

  #serverPids() {
    return processesOf(join(this.#folder, 'data'))
  }
}

type Member = Readonly<Record<'Member' | 'Role' | 'State', string>> & { readonly TL: number }

/** The cluster of three machines that the document describes, on this one, with HAProxy in front. */
export class PatroniCluster {
  readonly machines: readonly Machine[]
  /** For the service. */
  readonly url: string
  /** The configuration of what asks the cluster. */
  readonly #control: string

  private constructor(machines: readonly Machine[], url: string, control: string) {
    this.machines = machines
    this.url = url
    this.#control = control
  }

  static async start(t: Scope): Promise<PatroniCluster> {
    const folders = NAMES.map(() => makeFolder(t))
    const cluster = NAMES.map((name, index) => `${name}=http://127.0.1.${index + 1}:2380`).join()
    for (const [index, name] of NAMES.entries()) startEtcd(t, name, `127.0.1.${index + 1}`, folders[index]!, cluster)
    await Promise.all(NAMES.map((_, index) => agreed(`127.0.1.${index + 1}`)))

    const machines: Machine[] = []
    for (const [index, name] of NAMES.entries()) {
      const etcd = await openTcpProxy({ host: `127.0.1.${index + 1}`, port: 2379 })
      t.after(() => etcd.close())
      machines.push(new Machine(t, name, folders[index]!, etcd))
    }
    for (const machine of machines) machine.start()

    const [port, folder] = [await freePort(), makeFolder(t)]
    const file = join(folder, 'haproxy.cfg')
    writeFileSync(file, configuration('haproxy').replace('127.0.0.1:5433', `127.0.0.1:${port}`))
    startProcess(t, '/usr/sbin/haproxy', ['-db', '-f', file])
    const control = join(folder, 'control.yml')
    writeFileSync(control, 'scope: plants\netcd3:\n  host: 127.0.1.1:2379\n')
    const started = new PatroniCluster(machines, `postgres://plants:password@127.0.0.1:${port}/plants`, control)
    const { host } = await started.healthy()
    for (const statement of configuration('sql').trim().split('\n')) {
      await query(`postgres://postgres:a-password@${host}:5432/postgres`, statement)
    }
    return started
  }

  /** Settles with the primary once it has one, a synchronous standby, and another standby that follows. */
  async healthy(): Promise<Machine> {
    for (;;) {
      const members = await this.#members()
      const roles = members.map(({ Role }) => Role).sort()
      const [{ TL: timeline } = { TL: 0 }] = members
      const isFollowed = members.every(({ State, TL }) => /^(?:running|streaming)$/.test(State) && TL === timeline)
      if (isFollowed && roles.join() === 'Leader,Replica,Sync Standby') return this.#leader(members)!
      await sleep(500)
    }
  }

  /** Settles with the primary once it is another one. */
  async promoted(before: Machine): Promise<Machine> {
    for (;;) {
      const leader = this.#leader(await this.#members())
      if (leader !== undefined && leader !== before) return leader
      await sleep(200)
    }
  }

  async switchOver(leader: Machine): Promise<void> {
    await this.#ask('switchover', '--leader', leader.name, '--force')
  }

  async #members() {
    return JSON.parse(await this.#ask('list', '--format', 'json')) as Member[]
  }

  #leader(members: readonly Member[]) {
    const leader = members.find(({ Role, State }) => Role === 'Leader' && State === 'running')
    return this.machines.find(({ name }) => name === leader?.Member)
  }

  #ask(command: string, ...args: readonly string[]) {
    return run('/usr/bin/patronictl', ['--config-file', this.#control, command, ...args], true)
  }
}

/** Settles once etcd knows the version of its cluster. Patroni ends if it starts before that. */
async function agreed(host: string): Promise<void> {
  await listening(2379, host)
  for (;;) {
    const response = await fetch(`http://${host}:2379/version`)
    const { etcdcluster } = (await response.json()) as { etcdcluster: string }
    if (etcdcluster !== 'not_decided') return
    await sleep(100)
  }
}

function startEtcd(t: Scope, name: string, host: string, folder: string, cluster: string): void {
  const data = join(folder, 'etcd')
  mkdirSync(data, { mode: 0o700 })
  if (user !== undefined) chownSync(data, user.uid, user.gid)
  const [clients, peers] = [`http://${host}:2379`, `http://${host}:2380`]
  startProcess(t, '/usr/bin/etcd', [
    `--name=${name}`,
    `--data-dir=${data}`,
    `--listen-client-urls=${clients}`,
    `--advertise-client-urls=${clients}`,
    `--listen-peer-urls=${peers}`,
    `--initial-advertise-peer-urls=${peers}`,
    `--initial-cluster=${cluster}`,
  ])
}
