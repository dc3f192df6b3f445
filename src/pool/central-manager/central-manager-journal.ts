import * as z from 'zod';
import type { AttemptKey } from '../../job/ids.ts';
import type { Ending } from '../../site/contract.ts';
import { type Attempt, submittedOf } from './attempts.ts';
import { grantNodes, nodesOf, releaseNodes } from './gangs/nodes.ts';
import { attemptKey, attemptKeys } from '../../job/schema.ts';
import { ending } from '../../site/shapes.ts';
import { amount, flag, maybe, type Read, text, texts } from '../../util/schema.ts';
import {
  type AttemptRequest,
  attemptRequest,
  type Reservation,
  reservation,
  type UserPriority,
  userPriority,
} from '../wire/client-wire.ts';
import type { DerivedSpec } from '../wire/wire.ts';

const entry = <R extends string, S extends z.core.$ZodLooseShape>(r: R, shape: S) =>
  z.strictObject({ r: z.literal(r), ...shape });

const grantedNode = z.strictObject({
  /** With the node's number. */
  key: attemptKey,
  worker: text,
  boot: text,
  claim: text,
  token: text,
});
export type GrantedNode = Read<typeof grantedNode>;

/** Everything that the central manager promises, as written to the journal before it is announced. */
export const ENTRY = z.discriminatedUnion('r', [
  /** Prepared; `client` gets the reports. */
  entry('p', { client: text, request: attemptRequest }),
  /** Committed. */
  entry('c', { keys: attemptKeys }),
  /** Granted to a worker. For a map's task this is the only entry, and `client` says whose it is. */
  entry('g', { key: attemptKey, worker: text, boot: text, claim: text, token: text, client: maybe(text) }),
  /** All nodes of parallel jobs that start together, granted at once. */
  entry('G', { nodes: z.array(grantedNode) }),
  /** All these nodes were ready: the workers may be told to start them. `keys`: of the attempts. */
  entry('go', { keys: attemptKeys }),
  /** How parallel jobs have ended, before what is left of them is ended. `keys`: of the attempts. */
  entry('over', { keys: attemptKeys, ending }),
  /** Users have suspended these attempts of parallel jobs, or let them go on. */
  entry('still', { keys: attemptKeys, is: flag }),
  /** Nodes were granted and never started: these attempts wait again. */
  entry('R', { keys: attemptKeys }),
  /** The worker did not take it: it waits again. */
  entry('u', { key: attemptKey }),
  entry('e', { key: attemptKey, ending, at: maybe(amount), host: maybe(text) }),
  /** Its worker has died. */
  entry('b', { key: attemptKey }),
  /** Withdrawn: it cannot run any more. */
  entry('w', { key: attemptKey }),
  /** Forgotten. */
  entry('f', { keys: attemptKeys }),
  /** A reservation, or its end. */
  entry('reserve', { reservation }),
  entry('unreserve', { id: text }),
  /** The accounts of owners that have changed, or are gone. */
  entry('o', { userPriorities: z.array(userPriority), deleted: maybe(texts) }),
]);
export type CentralManagerEntry = Read<typeof ENTRY>;

/** Whether the client keeps the attempt (a map's task): only its grant is written to the journal. */
export function isKeptByClient(spec: AttemptRequest['spec']): spec is DerivedSpec {
  return 'base' in spec;
}

export interface Recovered {
  readonly attempts: Map<AttemptKey, Attempt>;
  /** Grants of tasks that a map's client has yet to name again. */
  readonly grants: Map<AttemptKey, Extract<CentralManagerEntry, { r: 'g' }>>;
  readonly userPriorities: readonly UserPriority[];
  readonly reservations?: readonly Reservation[];
}

/** The state that results from the entries of an earlier central manager. */
export function recover(entries: Iterable<CentralManagerEntry>): Recovered {
  const attempts: Recovered['attempts'] = new Map();
  const grants: Recovered['grants'] = new Map();
  const userPriorities = new Map<string, UserPriority>();
  const reservations = new Map<string, Reservation>();
  let order = 0;
  for (const entry of entries) {
    if (entry.r === 'o') {
      for (const one of entry.userPriorities) userPriorities.set(one.owner, one);
      for (const owner of entry.deleted ?? []) userPriorities.delete(owner);
    } else if (entry.r === 'reserve') reservations.set(entry.reservation.id, entry.reservation);
    else if (entry.r === 'unreserve') reservations.delete(entry.id);
    else if (entry.r === 'p') {
      const { client, request } = entry;
      attempts.set(request.key, {
        key: request.key,
        client,
        request,
        kind: undefined,
        order: order++,
        submitted: submittedOf(request.ad) ?? 0,
        phase: 'prepared',
      });
    } else if (entry.r === 'c') {
      for (const key of entry.keys) {
        const attempt = attempts.get(key);
        if (attempt?.phase === 'prepared') attempt.phase = 'idle';
      }
    } else if (entry.r === 'f') {
      for (const key of entry.keys) {
        for (const node of nodesOf(attempts.get(key))) attempts.delete(node.key);
        attempts.delete(key);
        grants.delete(key);
      }
    } else if (entry.r === 'G') grantNodes(attempts, entry.nodes);
    else if (entry.r === 'R') releaseNodes(attempts, entry.keys);
    else if (entry.r === 'go') {
      for (const key of entry.keys) {
        const attempt = attempts.get(key);
        if (attempt) attempt.gone = true;
      }
    } else if (entry.r === 'still') {
      for (const key of entry.keys) {
        const attempt = attempts.get(key);
        if (attempt) attempt.still = entry.is;
      }
    } else if (entry.r === 'over') {
      for (const key of entry.keys) {
        const attempt = attempts.get(key);
        if (attempt) attempt.decided = entry.ending;
      }
    } else apply(entry, attempts.get(entry.key), grants);
  }
  for (const attempt of attempts.values())
    if (attempt.phase === 'granted' && (!attempt.nodes || attempt.gone)) attempt.isAwaited = true;
  return { attempts, grants, userPriorities: [...userPriorities.values()], reservations: [...reservations.values()] };
}

/**
 * What is left when the journal was put back from a backup: its jobs are held, so that whoever releases one knows that it may have
 * run. Their workers were those of another state directory, and their leases would be waited for in vain.
 */
export function withoutAttempts({ userPriorities }: Recovered): Recovered {
  return { attempts: new Map(), grants: new Map(), userPriorities };
}

function apply(
  entry: Extract<CentralManagerEntry, { readonly key: AttemptKey }>,
  attempt: Attempt | undefined,
  grants: Recovered['grants'],
): void {
  switch (entry.r) {
    case 'g':
      if (!attempt) grants.set(entry.key, entry);
      else {
        const { worker, boot, claim, token } = entry;
        Object.assign(attempt, { phase: 'granted', worker, boot, claim, token });
      }
      return;
    case 'u':
      grants.delete(entry.key);
      if (attempt) ungrant(attempt);
      return;
    case 'e':
      if (!attempt) return;
      attempt.phase = 'ended';
      attempt.ending = entry.ending;
      if (entry.at !== undefined) attempt.startedAt = entry.at;
      if (entry.host !== undefined) attempt.host = entry.host;
      return;
    case 'b':
      if (attempt) attempt.orphan = true;
      return;
    case 'w':
      if (attempt) attempt.phase = 'withdrawn';
  }
}

export function ungrant(attempt: Attempt): void {
  attempt.phase = 'idle';
  delete attempt.worker;
  delete attempt.boot;
  delete attempt.token;
  delete attempt.claim;
  delete attempt.host;
  delete attempt.startedAt;
  delete attempt.isAwaited;
}

/** The fewest entries that produce the same state. */
export function* compacted({
  attempts,
  grants,
  userPriorities,
  reservations = [],
}: Recovered): Generator<CentralManagerEntry> {
  if (userPriorities.length > 0) yield { r: 'o', userPriorities };
  for (const one of reservations) yield { r: 'reserve', reservation: one };
  yield* grants.values();
  const all = [...attempts.values()].filter(({ node }) => node === undefined);
  for (const attempt of all.sort((a, b) => a.order - b.order)) {
    const { key, client, request, phase, worker, boot = '', claim = '', token = '' } = attempt;
    if (!isKeptByClient(request.spec)) {
      yield { r: 'p', client, request };
      if (phase !== 'prepared') yield { r: 'c', keys: [key] };
    }
    if (worker !== undefined) yield { r: 'g', key, worker, boot, claim, token, client };
    yield* compactedNodes(attempt);
    if (phase === 'ended' && attempt.ending) yield endedEntry(attempt, attempt.ending);
    if (attempt.orphan) yield { r: 'b', key };
    if (phase === 'withdrawn') yield { r: 'w', key };
  }
}

function* compactedNodes(attempt: Attempt): Generator<CentralManagerEntry> {
  const nodes = nodesOf(attempt);
  if (nodes.length === 0) return;
  const granted = nodes.map(({ key, worker = '', boot = '', claim = '', token = '' }) => ({
    key,
    worker,
    boot,
    claim,
    token,
  }));
  yield { r: 'G', nodes: granted };
  if (attempt.gone) yield { r: 'go', keys: [attempt.key] };
  if (attempt.still) yield { r: 'still', keys: [attempt.key], is: true };
  if (attempt.decided) yield { r: 'over', keys: [attempt.key], ending: attempt.decided };
  for (const node of nodes) {
    if (node.phase === 'ended' && node.ending) yield endedEntry(node, node.ending);
    if (node.orphan) yield { r: 'b', key: node.key };
  }
}

export function endedEntry(attempt: Attempt, ending: Ending): CentralManagerEntry {
  const { key, startedAt, host } = attempt;
  return {
    r: 'e',
    key,
    ending,
    ...(startedAt === undefined ? {} : { at: startedAt }),
    ...(host === undefined ? {} : { host }),
  };
}
