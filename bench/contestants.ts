import { fileURLToPath } from 'node:url'

/** A program that serves plants. It prints its URL once it is listening. */
export interface Contestant {
  readonly name: string
  readonly file: string
  /** The folder with the build of plant-store that it runs. */
  readonly dist: string
}

const contestant = (name: string, file: string, dist = '../dist/'): Contestant => ({
  name,
  file: fileURLToPath(new URL(file, import.meta.url)),
  dist: new URL(dist, import.meta.url).href,
})

/** The ratios in the table are relative to this contestant. */
export const PLANT_STORE = contestant('plant-store', 'contestants/plant-store.js')

export const CONTESTANTS: readonly Contestant[] = [
  contestant('node:http, prepared responses', 'contestants/floor.js'),
  contestant('hand-written, no validation', 'contestants/hand-written.js'),
  contestant('Fastify, @fastify/bearer-auth', 'contestants/fastify.js'),
  PLANT_STORE,
  contestant('plant-store, standalone', '../dist/server.js'),
]

/** plant-store as it is in another checkout, which has been built. */
export const otherCheckout = (folder: string): Contestant => ({
  ...PLANT_STORE,
  name: 'plant-store, other checkout',
  dist: new URL(`${folder}/dist/`, `file://${process.cwd()}/`).href,
})
