import { fileURLToPath } from 'node:url';
import type { Attrs } from '../job/attrs.ts';
import { UNIVERSE } from '../job/universe.ts';
import { readBoolean, readNumber } from '../job/values.ts';
import type { IoProxyPrograms } from '../site/contract.ts';
import { type Arch, nodeArch, nodeFor, type NodeSource } from '../staging/node-package.ts';
import type { SiteContext } from './context.ts';

/** The proxy, one file that needs nothing but Node. */
const PROGRAM = fileURLToPath(new URL('../io-proxy.mjs', import.meta.url));

/** The programs through which jobs ask their home at sites that the JobManager serves (`want_io_proxy`). */
export class ProxyPrograms {
  readonly #source: () => NodeSource;
  /** Paths of Node, by where it comes from and its processor. */
  readonly #nodes = new Map<string, Promise<string>>();

  constructor(source: () => NodeSource) {
    this.#source = source;
  }

  /** `undefined` if the job has no proxy there. Rejects with 'missing-program' if there is no Node for the site. */
  async of(
    { record, site, blobs }: Pick<SiteContext, 'record' | 'site' | 'blobs'>,
    ad: Attrs,
  ): Promise<IoProxyPrograms | undefined> {
    if (record.batch === 'pool' || record.target.kind === 'gram' || !asks(ad)) return undefined;
    const program = { kind: 'blob', blob: await blobs.blobOf(PROGRAM) } as const;
    // Its jobs run on this machine.
    if (record.target.kind === 'local' && record.batch === 'fork')
      return { node: { kind: 'there', path: process.execPath }, program };
    const arch = nodeArch((await site.describe()).arch);
    return { node: { kind: 'blob', blob: await blobs.blobOf(await this.#nodeFor(arch)) }, program };
  }

  #nodeFor(arch: Arch): Promise<string> {
    const source = this.#source();
    const which = `${source.from} ${arch}`;
    const known = this.#nodes.get(which) ?? nodeFor(arch, source).then(({ path }) => path);
    this.#nodes.set(which, known);
    known.catch(() => this.#nodes.delete(which));
    return known;
  }
}

function asks(ad: Attrs): boolean {
  const wants = (name: string) => readBoolean(ad, name) === true;
  // HTCondor sets it for every job of the parallel universe.
  if (readNumber(ad, 'JobUniverse') === UNIVERSE.parallel) return false;
  return wants('WantIOProxy') || wants('WantDelayedUpdates');
}
