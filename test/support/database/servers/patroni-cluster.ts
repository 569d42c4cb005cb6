import type { ChildProcess } from 'node:child_process'
import { chownSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  postgresBin,
  createServerDirectory,
  findServerPids,
  query,
  runCommand,
  sendSignal,
  startProcess,
  serverUser,
} from '../../wire/debian-servers.ts'
import type { CleanupScope } from '../../child-process.ts'
import { findCodeBlocks, readDocument } from '../../package/documents.ts'
import { findFreePort } from '../../wire/find-free-port.ts'
import { waitUntilListening } from '../../wire/wait-until-listening.ts'
import { openTcpProxy, type TcpProxy } from '../../wire/tcp-proxy.ts'

const NODE_NAMES = ['node1', 'node2', 'node3'] as const

/** Returns the last configuration example of a language in the document, with addresses of this machine. */
function readConfiguration(language: string) {
  const { code } = findCodeBlocks(readDocument('docs/postgres-high-availability.md'), language).at(-1)!
  return code.replaceAll('10.0.0.0/24', '127.0.0.0/16').replaceAll('10.0.0.', '127.0.1.')
}

/** A node of the cluster: etcd, Patroni and PostgreSQL. */
export class ClusterNode {
  readonly name: string
  readonly #t: CleanupScope
  readonly #folder: string
  /** The proxy between Patroni and etcd. */
  readonly etcdProxy: TcpProxy
  #patroni: ChildProcess | undefined

  constructor(t: CleanupScope, name: string, folder: string, etcdProxy: TcpProxy) {
    this.name = name
    this.#t = t
    this.#folder = folder
    this.etcdProxy = etcdProxy
    const data = join(folder, 'data')
    const text = readConfiguration('yaml')
      .replaceAll('127.0.1.1:8008', `${this.host}:8008`)
      .replaceAll('127.0.1.1:5432', `${this.host}:5432`)
      .replace('name: node1', `name: ${name}`)
      .replace(/^ {2}hosts: .*$/m, `  hosts: 127.0.0.1:${etcdProxy.port}\n  use_proxies: true`)
      .replace(/^ {2}data_dir: .*$/m, `  data_dir: ${data}`)
      .replace(/^ {2}bin_dir: .*$/m, `  bin_dir: ${postgresBin}\n  parameters:\n    unix_socket_directories: ${folder}`)
      .replace('mode: required', 'mode: "off"')
    writeFileSync(join(folder, 'patroni.yml'), text)
    t.after(() => this.kill())
  }

  get host(): string {
    return `127.0.1.${this.name.slice(-1)}`
  }

  /** Queries the node's PostgreSQL server. Rejects if the server is unreachable. */
  query<R extends object>(text: string): Promise<R[]> {
    return query(`postgres://postgres:a-password@${this.host}:5432/plants`, text)
  }

  start(): void {
    this.#patroni = startProcess(this.#t, '/usr/bin/patroni', [join(this.#folder, 'patroni.yml')], this.#folder)
  }

  /** Kills the main process of the server, which ends all sessions. */
  killPostgres(): void {
    sendSignal(this.#findPostgresPids().slice(0, 1), 'SIGKILL')
  }

  /** Kills Patroni and PostgreSQL. */
  kill(): void {
    this.#patroni?.kill('SIGKILL')
    sendSignal(this.#findPostgresPids(), 'SIGKILL')
  }

  freeze(): void {
    this.#patroni!.kill('SIGSTOP')
    sendSignal(this.#findPostgresPids(), 'SIGSTOP')
  }

  unfreeze(): void {
    sendSignal(this.#findPostgresPids(), 'SIGCONT')
    this.#patroni!.kill('SIGCONT')
  }

  #findPostgresPids() {
    return findServerPids(join(this.#folder, 'data'))
  }
}

type Member = Readonly<Record<'Member' | 'Role' | 'State', string>> & { readonly TL: number }

/** The cluster of three nodes that the document describes, on one machine, with HAProxy in front. */
export class PatroniCluster {
  readonly nodes: readonly ClusterNode[]
  /** The URL for the service, through HAProxy. */
  readonly url: string
  /** The configuration file of patronictl. */
  readonly #controlFile: string

  private constructor(nodes: readonly ClusterNode[], url: string, controlFile: string) {
    this.nodes = nodes
    this.url = url
    this.#controlFile = controlFile
  }

  static async start(t: CleanupScope): Promise<PatroniCluster> {
    const folders = NODE_NAMES.map(() => createServerDirectory(t))
    const initialCluster = NODE_NAMES.map((name, index) => `${name}=http://127.0.1.${index + 1}:2380`).join()
    for (const [index, name] of NODE_NAMES.entries())
      startEtcd(t, name, `127.0.1.${index + 1}`, folders[index]!, initialCluster)
    await Promise.all(NODE_NAMES.map((_, index) => waitForEtcd(`127.0.1.${index + 1}`)))

    const nodes: ClusterNode[] = []
    for (const [index, nodeName] of NODE_NAMES.entries()) {
      const etcdProxy = await openTcpProxy({ host: `127.0.1.${index + 1}`, port: 2379 })
      t.after(() => etcdProxy.close())
      nodes.push(new ClusterNode(t, nodeName, folders[index]!, etcdProxy))
    }
    for (const machine of nodes) machine.start()

    const [port, folder] = [await findFreePort(), createServerDirectory(t)]
    const file = join(folder, 'haproxy.cfg')
    writeFileSync(file, readConfiguration('haproxy').replace('127.0.0.1:5433', `127.0.0.1:${port}`))
    startProcess(t, '/usr/sbin/haproxy', ['-db', '-f', file])
    const controlFile = join(folder, 'control.yml')
    writeFileSync(controlFile, 'scope: plants\netcd3:\n  host: 127.0.1.1:2379\n')
    const patroniCluster = new PatroniCluster(nodes, `postgres://plants:password@127.0.0.1:${port}/plants`, controlFile)
    const { host } = await patroniCluster.waitUntilHealthy()
    for (const statement of readConfiguration('sql').trim().split('\n')) {
      await query(`postgres://postgres:a-password@${host}:5432/postgres`, statement)
    }
    return patroniCluster
  }

  /** Waits for a primary, a synchronous standby and another streaming standby. Returns the primary. */
  async waitUntilHealthy(): Promise<ClusterNode> {
    for (;;) {
      const members = await this.#listMembers()
      const roles = members.map(({ Role }) => Role).sort()
      const [{ TL: timeline } = { TL: 0 }] = members
      const areReplicasStreaming = members.every(
        ({ State, TL }) => /^(?:running|streaming)$/.test(State) && TL === timeline,
      )
      if (areReplicasStreaming && roles.join() === 'Leader,Replica,Sync Standby') return this.#findPrimary(members)!
      await sleep(500)
    }
  }

  /** Waits for a new primary, and returns it. */
  async waitForNewPrimary(previousPrimary: ClusterNode): Promise<ClusterNode> {
    for (;;) {
      const leader = this.#findPrimary(await this.#listMembers())
      if (leader !== undefined && leader !== previousPrimary) return leader
      await sleep(200)
    }
  }

  async switchover(leader: ClusterNode): Promise<void> {
    await this.#runPatronictl('switchover', '--leader', leader.name, '--force')
  }

  async #listMembers() {
    return JSON.parse(await this.#runPatronictl('list', '--format', 'json')) as Member[]
  }

  #findPrimary(members: readonly Member[]) {
    const leader = members.find(({ Role, State }) => Role === 'Leader' && State === 'running')
    return this.nodes.find(({ name }) => name === leader?.Member)
  }

  #runPatronictl(command: string, ...args: readonly string[]) {
    return runCommand('/usr/bin/patronictl', ['--config-file', this.#controlFile, command, ...args], true)
  }
}

/** Waits until etcd has determined its cluster version. Patroni exits if it starts earlier. */
async function waitForEtcd(host: string): Promise<void> {
  await waitUntilListening(2379, host)
  for (;;) {
    const response = await fetch(`http://${host}:2379/version`)
    const { etcdcluster } = (await response.json()) as { etcdcluster: string }
    if (etcdcluster !== 'not_decided') return
    await sleep(100)
  }
}

function startEtcd(t: CleanupScope, name: string, host: string, folder: string, initialCluster: string): void {
  const data = join(folder, 'etcd')
  mkdirSync(data, { mode: 0o700 })
  if (serverUser !== undefined) chownSync(data, serverUser.uid, serverUser.gid)
  const [clients, peers] = [`http://${host}:2379`, `http://${host}:2380`]
  startProcess(t, '/usr/bin/etcd', [
    `--name=${name}`,
    `--data-dir=${data}`,
    `--listen-client-urls=${clients}`,
    `--advertise-client-urls=${clients}`,
    `--listen-peer-urls=${peers}`,
    `--initial-advertise-peer-urls=${peers}`,
    `--initial-cluster=${initialCluster}`,
  ])
}
