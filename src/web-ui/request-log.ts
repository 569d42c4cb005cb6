import { cloneTemplate, cut, find, setText } from './document.ts'

/** Sends a request like `fetch`, and adds it and its response to the request log. */
export async function loggedFetch(url: string, init: RequestInit): Promise<Response> {
  const request = `${init.method!} ${url.slice(location.origin.length)}`
  const show = addItem(request, toCurl(url, init))
  const start = performance.now()
  const getTime = (): string => `${Math.round(performance.now() - start)} ms`
  try {
    const response = await fetch(url, { ...init, cache: 'no-store' })
    const body = cut(await response.clone().text(), 2000)
    const headers = Array.from(response.headers, ([name, value]) => `${name}: ${value}`).join('\n')
    show(`${response.status} ${response.statusText}, ${getTime()}`, `${headers}\n\n${body}`.trim())
    return response
  } catch (error) {
    show(`${init.signal!.aborted ? 'canceled' : 'no response'}, ${getTime()}`, '')
    throw error
  }
}

/** Adds a request to the log, and returns a function that shows its response. */
function addItem(request: string, curl: string): (status: string, response: string) => void {
  const item = cloneTemplate('request')
  const [summary, command] = [find('summary', item), setText(find('.curl', item), curl)]
  command.onfocus = () => getSelection()?.selectAllChildren(command)
  const list = find('#requests')
  // A list that is read again and again must not displace the other requests.
  const newest = list.firstElementChild
  if (request.startsWith('GET') && newest?.textContent.trim().startsWith(`${request} –`)) newest.remove()
  list.prepend(item)
  if (list.childElementCount > 20) list.lastElementChild!.remove()
  setText(summary, `${request} – …`)
  return (status, response) => {
    setText(summary, `${request} – ${status}`)
    setText(find('.response', item), response)
  }
}

function toCurl(url: string, { method, body }: RequestInit): string {
  const quoteForShell = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`
  const lines = [`curl -i -X ${method!} ${quoteForShell(url)}`, '-H "Authorization: Bearer $TOKEN"']
  if (typeof body === 'string') lines.push("-H 'Content-Type: application/json'", `-d ${quoteForShell(body)}`)
  return lines.join(' \\\n  ')
}
