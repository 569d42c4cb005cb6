/** Whether a host is a Unix socket. */
export function isPath(host: string): boolean {
  return host.startsWith('/')
}

/** A host of this machine that stands for an address to listen on: nobody can connect to all addresses. */
export function reachableHost(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1'
  return host === '::' ? '::1' : host
}

/** The URL of a server on this machine. */
export function urlOf(host: string, port: number): string {
  const reachable = reachableHost(host)
  return `http://${reachable.includes(':') ? `[${reachable}]` : reachable}:${port}`
}
