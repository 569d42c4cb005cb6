/** A metric with all its series, in the text format of Prometheus. */
export interface Family {
  readonly name: string
  readonly help: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  /** The lines of its series as they are now. */
  readonly samples: () => readonly string[]
}

/** Values of labels, all of them our own: a client could make series without end, and the text escapes nothing. */
export type Labels = Readonly<Record<string, string>>

/** Writes metrics in version 0.0.4 of the text format. */
export function formatFamilies(families: readonly Family[]): string {
  return families
    .map(({ name, help, type, samples }) => `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${samples().join('')}`)
    .join('')
}

/** A metric with one series, whose value is looked up when it is asked for. */
export function single(type: 'counter' | 'gauge', name: string, help: string, read: () => number): Family {
  return { name, help, type, samples: () => [formatSample(name, {}, read())] }
}

/** Counts events, for each set of labels. */
export class Counter implements Family {
  readonly type = 'counter'
  readonly name: string
  readonly help: string
  readonly #counts = new Map<string, { readonly labels: Labels; count: number }>()

  constructor(name: string, help: string) {
    this.name = name
    this.help = help
  }

  add(labels: Labels): void {
    const key = formatLabels(labels)
    const series = this.#counts.get(key) ?? { labels, count: 0 }
    series.count++
    this.#counts.set(key, series)
  }

  readonly samples = (): string[] => {
    return [...this.#counts.values()].map(({ labels, count }) => formatSample(this.name, labels, count))
  }
}

/** Counts values by size. */
export interface Series {
  observe(value: number): void
}

/** The bounds that OpenTelemetry's semantic conventions advise for durations in seconds. */
export const SECONDS: readonly number[] = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10]

/** A histogram. Keep a series that you observe often: to find one takes longer than to count. */
export class Histogram implements Family {
  readonly type = 'histogram'
  readonly name: string
  readonly help: string
  readonly #bounds: readonly number[]
  readonly #series: { readonly labels: Labels; readonly buckets: Buckets }[] = []

  /** @param bounds the greatest value of each bucket, ascending */
  constructor(name: string, help: string, bounds: readonly number[]) {
    this.name = name
    this.help = help
    this.#bounds = bounds
  }

  /** Adds a series, whose labels no other one has. */
  addSeries(labels: Labels): Series {
    const buckets = new Buckets(this.#bounds)
    this.#series.push({ labels, buckets })
    return buckets
  }

  readonly samples = (): string[] => {
    return this.#series.flatMap(({ labels, buckets: { counts, sum } }) => {
      let total = 0
      const lines = [...counts].map((count, i) => {
        total += count
        return formatSample(`${this.name}_bucket`, { ...labels, le: String(this.#bounds[i] ?? '+Inf') }, total)
      })
      return [
        ...lines,
        formatSample(`${this.name}_sum`, labels, sum),
        formatSample(`${this.name}_count`, labels, total),
      ]
    })
  }
}

class Buckets implements Series {
  sum = 0
  readonly counts: Float64Array
  readonly #bounds: readonly number[]

  constructor(bounds: readonly number[]) {
    this.#bounds = bounds
    this.counts = new Float64Array(bounds.length + 1)
  }

  observe(value: number): void {
    let i = 0
    while (value > this.#bounds[i]!) i++
    this.counts[i]!++
    this.sum += value
  }
}

function formatSample(name: string, labels: Labels, value: number): string {
  return `${name}${formatLabels(labels)} ${value}\n`
}

function formatLabels(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${value}"`)
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`
}
