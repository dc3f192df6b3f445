/** Tools that work on files alone, without a queue; each is loaded only when needed. */

/** Reading, checking and drawing DAG files. */
export const dagTools = () => import('./dag-tools.ts');

/** X.509 proxies in files: make, show, destroy. */
export const proxyTools = () => import('./cred-proxy.ts');

/** The contents of a MyProxy server: store, get, list, destroy. */
export const myProxyTools = () => import('./cred-myproxy.ts');

/** Times and sizes in the configuration's notation: `1h30m`, `16G`. */
export const kinds = () => import('../config/kinds.ts');

/** A command and its arguments as the description of a job. */
export const oneJobs = () => import('./one-job.ts');

/** Batch scripts that start the tasks of a step, as srun does. */
export const steps = () => import('./step.ts');

/** Jobs whose user types at a terminal there. */
export const sessions = () => import('./session.ts');
