import type { AttrTexts } from './attrs.ts';
import { readNumber, quoted, readString, type TextSource } from './values.ts';
import { UNIVERSE } from './universe.ts';

/** Where a user wants a job to run. */
export interface Destination {
  readonly site: string;
  readonly manager: string;
  /** Its grid_resource; `undefined` for the pool. */
  readonly resource: string | undefined;
}

/** The part of a transition that routes a job elsewhere. */
interface Move {
  readonly route: { readonly manager: string; readonly site: string };
  readonly set: AttrTexts;
}

/**
 * Records in the job's own ad where it is wanted, until its current site has released it. A crash cannot lose the wish.
 */
export function wish({ site, manager, resource }: Destination): AttrTexts {
  return {
    GryphusMoveTo: quoted(site),
    GryphusMoveManager: quoted(manager),
    GryphusMoveResource: resource === undefined ? null : quoted(resource),
  };
}

/** Clears the wish once it has been fulfilled or can no longer be. */
export const NO_WISH = { GryphusMoveTo: null, GryphusMoveManager: null, GryphusMoveResource: null } as const;

/** Clears the wish in a job's ad; nothing if there is none, as for most jobs. */
export function withoutWish(attrs: TextSource): AttrTexts {
  return readString(attrs, 'GryphusMoveTo') === undefined ? {} : NO_WISH;
}

/** What to add to the transition that releases a job from its site: if the job is wanted elsewhere, it goes there. */
export function asWished(attrs: TextSource): Partial<Move> {
  const site = readString(attrs, 'GryphusMoveTo');
  const manager = readString(attrs, 'GryphusMoveManager');
  if (site === undefined || manager === undefined) return {};
  return goTo({ site, manager, resource: readString(attrs, 'GryphusMoveResource') }, readNumber(attrs, 'JobUniverse'));
}

/** Routes a job to a new site. Clears everything in its ad about its earlier site and the broker's choice. */
export function goTo({ site, manager, resource }: Destination, universe?: number): Move {
  return {
    route: { manager, site },
    set: {
      ...NO_WISH,
      // A Java job is one everywhere.
      ...(universe === UNIVERSE.java
        ? {}
        : { JobUniverse: String(resource === undefined ? UNIVERSE.vanilla : UNIVERSE.grid) }),
      GridResource: resource === undefined ? null : quoted(resource),
      WantFlood: null,
      GridJobId: null,
      GridJobStatus: null,
      GryphusChoice: null,
      GryphusRoutedAt: null,
      GryphusTakenBackFrom: null,
    },
  };
}
