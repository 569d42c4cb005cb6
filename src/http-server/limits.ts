/** The time-outs and limits of a server. */
export interface Limits {
  readonly headersTimeoutMs: number
  readonly requestTimeoutMs: number
  readonly keepAliveTimeoutMs: number
  readonly stallTimeoutMs: number
  readonly checkIntervalMs: number
  readonly drainTimeoutMs: number
  readonly maxHeaderBytes: number
  readonly maxConnections: number
}

export const DEFAULT_LIMITS: Limits = {
  // A client that means well sends its header at once. This leaves time for packets that are lost twice.
  headersTimeoutMs: 10_000,
  // Enough for a body of 64 KiB at 20 kbit/s.
  requestTimeoutMs: 30_000,
  // Shorter than a drain, so that idle connections close by themselves. Behind a proxy it must exceed the time-out of
  // the proxy, or the proxy may send a request just as the connection closes.
  keepAliveTimeoutMs: 5000,
  // The kernel takes megabytes at a time, and then nothing for half a minute for a client that reads 60 kB a second.
  stallTimeoutMs: 60_000,
  // With Node's default of 30 s a late request would live far beyond its time-out.
  checkIntervalMs: 500,
  // Well within the 30 s that Kubernetes waits before it kills a process.
  drainTimeoutMs: 10_000,
  maxHeaderBytes: 16_384,
  // Each may take a list of 2 MiB: 2 GiB in all, which Node has on a machine of 4 GiB.
  maxConnections: 1000,
}
