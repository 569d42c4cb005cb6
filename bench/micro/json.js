// Parsing JSON with exact integers vs. JSON.parse, which rounds them beyond 2^53.
import { parseJson } from '../../dist/http/json.js'
import { compare } from './compare.ts'

const plants = Array.from({ length: 200 }, (_, n) => ({
  id: n,
  name: `Monstera deliciosa ${n}`,
  heights: [n / 10, -1e3],
}))

for (const [title, text] of [
  ['a plant', '{"id":123456789,"name":"Monstera deliciosa","tag":"tropical"}'],
  ['a plant with text beyond ASCII', '{"id":9223372036854775807,"name":"Aloë vera – 芦荟","tag":"succulent"}'],
  ['a plant with escapes', String.raw`{"id":-42,"name":"\u82a6\u835f \"aloe\"","tag":"suc\\culent"}`],
  [`a document of ${JSON.stringify(plants).length} bytes`, JSON.stringify(plants)],
]) {
  const body = Buffer.from(text)
  compare(`JSON: ${title}`, {
    'JSON.parse(bytes.toString())': () => JSON.parse(body.toString()),
    'parseJson(bytes)': () => parseJson(body),
  })
}
