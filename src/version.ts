/**
 * The version of the package. A test holds it to package.json: reading that file would cost every host a read, and
 * bundlers leave the file out.
 */
export const VERSION = '1.0.0'
