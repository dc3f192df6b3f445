import { parseWholeExpr, printExpr } from '../classad/api.ts';
import { MOST_FURTHER } from '../config/agreements.ts';
import type { AttrTexts } from '../job/attrs.ts';
import { quoted } from '../job/values.ts';
import type { Refused } from './clauses.ts';
import { type Hop, type LentKind, MOST_KINDS, type Of } from './flock-wire.ts';
import type { Passage } from './lent-journal.ts';
import { FLOCK_TO, FLOCK_WAY } from './lists.ts';

/** Gateways from this version on pass jobs on; others are neither offered machines of a third pool nor sent jobs of one. */
export const PASSES_ON = 4;

/** By which agents a pool is reached, as one word of an ad. */
export function wayOf(agents: readonly string[]): string {
  return agents.join(' ');
}

/** `c via b`: how people call the pool at the end of a path. `path`: what is beyond `partner`, the nearest first. */
export function poolName(partner: string, path: readonly Hop[]): string {
  return [...path.map(({ name }) => name).reverse(), partner].join(' via ');
}

export interface Around {
  /** Our own agent, */
  readonly us: string;
  /** and those of the other partners, with each of whom an agreement of its own decides. */
  readonly others: ReadonlySet<string>;
}

/**
 * What of a partner's list our jobs may use: its own machines, and those of further pools that are at most `hops` beyond it, on paths
 * that come back to nobody.
 */
export function usable(
  kinds: readonly LentKind[],
  sender: string,
  hops: number,
  { us, others }: Around,
): readonly LentKind[] {
  return kinds.filter(({ path = [] }) => {
    const agents = path.map(({ agent }) => agent);
    return path.length <= hops && areApart([us, sender, ...agents]) && !agents.some((agent) => others.has(agent));
  });
}

/** What a partner of ours offers us, and passes on. */
export interface Source {
  readonly hop: Hop;
  readonly kinds: readonly LentKind[];
}

/**
 * What we may pass on to a partner of what others offer us: each pool by its shortest path, at most so many cores of a kind, and nothing
 * on a path that comes back to the partner, to us or to anyone.
 */
export function passable(sources: readonly Source[], to: string, us: string, cores: number): LentKind[] {
  const ways = new Map<string, { readonly path: readonly Hop[]; readonly way: string; readonly kinds: LentKind[] }>();
  if (cores < 1) return [];
  for (const { hop, kinds } of sources) {
    for (const { path: beyond = [], ad, machines, each, all } of kinds) {
      const path = [hop, ...beyond];
      const agents = path.map(({ agent }) => agent);
      if (path.length > MOST_FURTHER || !areApart([to, us, ...agents]) || all.cpus < 1) continue;
      const end = agents.at(-1) ?? '';
      const way = wayOf(agents);
      const known = ways.get(end);
      const isBetter =
        !known || path.length < known.path.length || (path.length === known.path.length && way < known.way);
      if (known && known.way !== way && !isBetter) continue;
      const most = (size: LentKind['each']) => ({ ...size, cpus: Math.min(size.cpus, cores) });
      const kind = { ad, machines, each: most(each), all: most(all), path };
      if (known?.way === way) known.kinds.push(kind);
      else ways.set(end, { path, way, kinds: [kind] });
    }
  }
  const shortest = [...ways.values()].sort((a, b) => a.path.length - b.path.length || (a.way < b.way ? -1 : 1));
  return shortest.flatMap(({ kinds }) => kinds).slice(0, MOST_KINDS);
}

/** Why the way on which a partner's job comes, or is to go, is none. */
export function faultInWay(
  { path = [], to = [] }: Pick<Of<'prepare'>, 'path' | 'to'>,
  sender: string,
  { us, others }: Around,
): Refused | undefined {
  const no = (message: string) => ({ clause: 'path', message });
  if (path.length + to.length > MOST_FURTHER) return no(`it is passed on through more than ${MOST_FURTHER} pools`);
  const agents = [...path, { agent: sender }, { agent: us }, ...to].map(({ agent }) => agent);
  if (!areApart(agents)) return no('its path comes back to a pool where it was');
  const own = path.find(({ agent }) => others.has(agent));
  return own && no(`jobs of ${own.name} come from that pool itself, by the agreement that we have with it`);
}

/** A job's ad with its way: from whom it comes, and where alone it may go. `undefined`: its Requirements cannot be read. */
export function withWay(ad: AttrTexts, partner: string, { path, to }: Passage): AttrTexts | undefined {
  const from = path.length === 0 ? {} : { FlockPath: quoted([...path.map(({ name }) => name), partner].join(' via ')) };
  if (to.length === 0) return { ...ad, ...from };
  const way = quoted(wayOf(to.map(({ agent }) => agent)));
  try {
    const wanted = printExpr(parseWholeExpr(ad['Requirements'] ?? 'true'));
    return { ...ad, ...from, [FLOCK_TO]: way, Requirements: `(${wanted}) && TARGET.${FLOCK_WAY} =?= ${way}` };
  } catch {
    return undefined;
  }
}

/** All names from a job's home to where it runs, where we are `here`. */
export function wayText(before: readonly string[], beyond: readonly string[]): string {
  return [...before, 'here', ...beyond].join(' → ');
}

function areApart(agents: readonly string[]): boolean {
  return new Set(agents).size === agents.length;
}
