/** A copy of the version in package.json, which bundles don't contain. A test compares the two. */
export const VERSION = '1.0.0'
