import type { AttrTexts } from '../job/attrs.ts';
import { quoted, readString, type TextSource } from '../job/values.ts';
import type { Change } from '../queue/api.ts';
import { UNIVERSE } from './files.ts';

/** Where a person wants a job. */
export interface Destination {
  readonly site: string;
  readonly manager: string;
  /** Its grid_resource; `undefined` for the pool. */
  readonly resource: string | undefined;
}

/** A job that its present site has to let go first carries where it is wanted in its own ad, so that no crash forgets it. */
export function wish({ site, manager, resource }: Destination): AttrTexts {
  return {
    GryphusMoveTo: quoted(site),
    GryphusMoveManager: quoted(manager),
    GryphusMoveResource: resource === undefined ? null : quoted(resource),
  };
}

/** The wish, where it has been granted or can no longer be. */
export const NO_WISH = { GryphusMoveTo: null, GryphusMoveManager: null, GryphusMoveResource: null } as const;

/** The same for the ad of a job, which mostly has none. */
export function withoutWish(attrs: TextSource): AttrTexts {
  return readString(attrs, 'GryphusMoveTo') === undefined ? {} : NO_WISH;
}

/** What the arrow says besides that takes a job out of its site's hands: where it was wanted elsewhere, it goes there. */
export function asWished(attrs: TextSource): Pick<Change, 'route' | 'set'> {
  const site = readString(attrs, 'GryphusMoveTo');
  const manager = readString(attrs, 'GryphusMoveManager');
  if (site === undefined || manager === undefined) return {};
  return goTo({ site, manager, resource: readString(attrs, 'GryphusMoveResource') });
}

/** What the job's ad says of its site from then on; nothing is left of what it was at the last, or of the broker's choice. */
export function goTo({ site, manager, resource }: Destination): Required<Pick<Change, 'route' | 'set'>> {
  return {
    route: { manager, site },
    set: {
      ...NO_WISH,
      JobUniverse: String(resource === undefined ? UNIVERSE.vanilla : UNIVERSE.grid),
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
