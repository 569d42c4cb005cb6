/** A test holds it to package.json, which bundlers leave out. */
export const VERSION = '1.0.0'
