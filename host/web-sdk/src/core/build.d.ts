/** The package's version; `build.mjs` puts it in. */
declare const __VERSION__: string;
/** Name and digest of the bundle of surveys, in bundles that a server serves. */
declare const __SURVEYS__: string;
/** Name and digest of the service worker, in bundles that a server serves. */
declare const __WORKER__: string;
