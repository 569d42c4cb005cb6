import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { startChild } from '../child.ts'
import { freePort } from '../wire/free-port.ts'
import { temporaryDirectory } from '../temporary-file.ts'

/** A value that Prometheus knows. */
export interface Sample {
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

/** Asks Prometheus until the answer has a sample above 0, which takes two scrapes if it is a rate. */
export type Ask = (query: string) => Promise<readonly Sample[]>

/**
 * Starts Prometheus, which scrapes an admin port every second. It ends with the test.
 * @param scrapes its scrape_configs, for the port 9090
 * @param rules a file of rules
 */
export async function startPrometheus(t: TestContext, admin: string, scrapes: string, rules: string): Promise<Ask> {
  const directory = temporaryDirectory(t)
  const config = `
global: { scrape_interval: 1s, evaluation_interval: 1s }
rule_files: [rules.yml]
${scrapes.replace('127.0.0.1:9090', new URL(admin).host)}
`
  writeFileSync(join(directory, 'prometheus.yml'), config)
  writeFileSync(join(directory, 'rules.yml'), rules)
  const host = `127.0.0.1:${await freePort()}`
  const args = ['--config.file=prometheus.yml', '--storage.tsdb.path=data', `--web.listen-address=${host}`]
  startChild(t, 'prometheus', args, { cwd: directory, stdio: 'ignore' })

  return async function ask(query) {
    const url = `http://${host}/api/v1/query?query=${encodeURIComponent(query)}`
    for (;;) {
      // It takes a moment to start.
      const response = await fetch(url).catch(() => undefined)
      if (response?.status === 400) throw new Error(`Prometheus cannot read ${query}: ${await response.text()}`)
      const samples = response?.ok === true ? readSamples(await response.json()) : []
      if (samples.some(({ value }) => value > 0)) return samples
      await setTimeout(100)
    }
  }
}

function readSamples(body: unknown): Sample[] {
  const { data } = body as { data: { result: { metric: Record<string, string>; value: [number, string] }[] } }
  return data.result.map(({ metric, value: [, value] }) => ({ labels: metric, value: Number(value) }))
}
