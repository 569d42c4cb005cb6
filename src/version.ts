/** A copy of the version in package.json, because bundles don't contain that file. A test compares the two. */
export const VERSION = '1.0.0'
