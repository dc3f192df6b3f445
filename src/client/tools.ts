/** What is done with files alone, without a queue; each part is loaded when it is asked for. */

/** Reading, checking and drawing DAG files. */
export const dagTools = () => import('./dag-tools.ts');

/** X.509 proxies in files: make, show, destroy. */
export const proxyTools = () => import('./cred-proxy.ts');

/** What a MyProxy server keeps: store, get, list, destroy. */
export const myProxyTools = () => import('./cred-myproxy.ts');

/** Times and sizes as the configuration writes them: `1h30m`, `16G`. */
export const kinds = () => import('../config/kinds.ts');
