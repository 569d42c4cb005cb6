// Runs another contestant behind the compression middleware, which wraps each response.
import compression from 'compression'

/** @param options.file the file of the other contestant, relative to the parent folder */
export default async function listen({ options, ...settings }) {
  const { default: listenUncompressed } = await import(new URL(`../${options.file}`, import.meta.url))
  const server = await listenUncompressed(settings)
  const compress = compression()
  const listeners = server.listeners('request')
  server.removeAllListeners('request').on('request', (request, response) => {
    compress(request, response, () => {
      for (const listener of listeners) listener.call(server, request, response)
    })
  })
  return server
}
