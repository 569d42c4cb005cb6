/**
 * Formats commands to paste into a shell, the same as in the README, and a link to open in a browser.
 * @param url the URL of the server; undefined if it's unknown, so that no command can contain it
 */
export function formatWelcome(url: string | undefined, token: string, hasWebUi: boolean): string {
  const paragraphs = [
    `No tokens are configured. This demo token (owner: demo) is valid until the server stops: ${token}`,
  ]
  if (url !== undefined) {
    const isTcp = url.startsWith('http:')
    const baseUrl = isTcp ? url : 'http://localhost'
    const socketOption = isTcp ? '' : `--unix-socket ${quoteForShell(url.slice('unix:'.length))} `
    const headers = '-H "Authorization: Bearer $TOKEN"'
    const commands = [
      String.raw`-w '\n' "$URL/plants" ${headers} --json '{"id":9007199254740993,"name":"Fern"}'`,
      String.raw`-w '\n' "$URL/plants?include=id" ${headers}`,
      String.raw`-w '%{http_code}\n' -X DELETE "$URL/plants/9007199254740993" ${headers}`,
    ].map((args) => `  curl ${socketOption}${args}`)
    paragraphs.push(
      `Paste these lines into another terminal to set URL and TOKEN:\n\n  export URL='${baseUrl}'\n  export TOKEN='${token}'`,
      `Then create, list and delete a plant there (with curl 7.82 or later):\n\n${commands.join('\n')}`,
    )
    if (hasWebUi && isTcp) {
      const warning = "this link contains the demo token, which stays in your browser's history"
      paragraphs.push(`Open the web UI (${warning}):\n\n  ${url}/#token=${token}`)
    }
  }
  return `${paragraphs.join('\n\n')}\n`
}

const quoteForShell = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`
