import * as z from 'zod';
import { MESSAGE, type Message } from './messages.ts';

/** A message on its way to one person. */
export const PENDING = z
  .object({
    to: z.string(),
    message: MESSAGE,
    /** Unix seconds when it was queued. */
    since: z.number(),
  })
  .readonly();
export type Pending = z.infer<typeof PENDING>;

/** What was sent; the caller stores it with the state, so that a restart neither repeats mails nor floods. */
export const SENT = z
  .object({
    to: z.string(),
    at: z.number(),
    /** Keys of all messages in that mail. */
    keys: z.array(z.string()).readonly(),
  })
  .readonly();
export type Sent = z.infer<typeof SENT>;

export interface Limits {
  /** How many seconds non-urgent messages wait, so that several go as one mail. */
  readonly digestSeconds: number;
  /** The most mails to one person within an hour; the rest wait and go as one mail. */
  readonly perHour: number;
}

export const DEFAULT_LIMITS: Limits = { digestSeconds: 60, perHour: 12 };

export interface Post {
  readonly mails: readonly { readonly to: string; readonly message: Message; readonly keys: readonly string[] }[];
  readonly waiting: readonly Pending[];
  readonly sent: readonly Sent[];
  /** Unix seconds when waiting mail is due. */
  readonly wakeAt: number | undefined;
}

/** For how many of the last mails to a person the keys are remembered. */
const REMEMBERED = 500;
const HOUR = 3600;

/**
 * Decides which mails go out now. Never a flood: a repeated message goes once, several become one mail, and each hour
 * has a limit. A clock that was set back delays a mail by at most an hour. Save the answer before sending.
 */
export function post(
  pending: readonly Pending[],
  history: readonly Sent[],
  now: number,
  limits: Limits = DEFAULT_LIMITS,
): Post {
  const past = history.map((one) => (one.at > now ? { ...one, at: now } : one));
  const mails: Post['mails'][number][] = [];
  const waiting: Pending[] = [];
  const sent: Sent[] = [];
  const due: number[] = [];
  const people = new Set([...pending.map((one) => one.to), ...past.map((one) => one.to)]);
  for (const to of people) {
    const mine = past.filter((one) => one.to === to).slice(-REMEMBERED);
    sent.push(...mine);
    const fresh = unsent(
      pending.filter((one) => one.to === to),
      mine,
    );
    if (fresh.length === 0) continue;
    const recent = mine.filter((one) => one.at > now - HOUR).map((one) => one.at);
    const [at, ready] = readyOf(fresh, recent, now, limits);
    const going = new Set(ready);
    waiting.push(...fresh.filter((one) => !going.has(one)));
    if (at !== undefined) due.push(at);
    if (ready.length === 0) continue;
    const keys = ready.map((one) => one.message.key);
    mails.push({ to, message: asOne(ready.map((one) => one.message)), keys });
    sent.push({ to, at: now, keys });
  }
  return { mails, waiting, sent, wakeAt: due.length === 0 ? undefined : Math.min(...due) };
}

function unsent(mine: readonly Pending[], past: readonly Sent[]): readonly Pending[] {
  const known = new Set(past.flatMap((one) => one.keys));
  return mine.filter((one) => {
    if (known.has(one.message.key)) return false;
    known.add(one.message.key);
    return true;
  });
}

/** When the rest is due, and what goes now: everything, as soon as one message must go. */
function readyOf(
  fresh: readonly Pending[],
  recent: readonly number[],
  now: number,
  limits: Limits,
): readonly [number | undefined, readonly Pending[]] {
  if (recent.length >= limits.perHour) return [(recent.at(-limits.perHour) ?? now) + HOUR, []];
  const ripe = Math.min(
    ...fresh.map((one) => (one.message.urgent ? now : Math.min(one.since, now) + limits.digestSeconds)),
  );
  return ripe <= now ? [undefined, fresh] : [ripe, []];
}

const SHOWN = 10;

function asOne(messages: readonly Message[]): Message {
  const [first] = messages;
  if (first === undefined) throw new RangeError('A digest needs a message.');
  if (messages.length === 1) return first;
  const ordered = [...messages.filter((one) => one.urgent), ...messages.filter((one) => !one.urgent)];
  const groups = grouped(ordered);
  const plain = groups.map(titleOf);
  const shown = groups.slice(0, SHOWN).flatMap(([one]) => (one ? [one] : []));
  const rest = messages.length - shown.length;
  return {
    key: `digest ${first.key}`,
    kind: ordered[0]?.kind ?? first.kind,
    urgent: ordered[0]?.urgent ?? false,
    subject: cutTo(150, `[Gryphus] ${messages.length} messages: ${plain[0] ?? ''}`),
    body: [
      ...plain.slice(0, 200).map((subject) => `* ${subject}`),
      ...(plain.length > 200 ? [`* and ${plain.length - 200} more`] : []),
      '',
      ...shown.map((one) => `---- ${one.subject}\n\n${one.body}`),
      ...(rest > 0 ? [`(${rest} more are named above, not shown.)`, ''] : []),
    ].join('\n'),
  };
}

/** Groups messages that say the same of several jobs, in the order of each group's first message. */
function grouped(messages: readonly Message[]): readonly (readonly Message[])[] {
  const groups = new Map<string, Message[]>();
  for (const one of messages) {
    const name = one.alike === undefined ? `only ${one.key}` : `alike ${one.alike.says}`;
    const group = groups.get(name);
    if (group) group.push(one);
    else groups.set(name, [one]);
  }
  return [...groups.values()];
}

/** How many jobs of a group are named. */
const NAMED = 20;

function titleOf(group: readonly Message[]): string {
  const [first] = group;
  if (group.length === 1 || !first?.alike) return (first?.subject ?? '').replace(/^\[Gryphus\] /, '');
  const names = group.slice(0, NAMED).map((one) => one.alike?.what);
  const more = group.length > NAMED ? ` and ${group.length - NAMED} more` : '';
  return `${group.length} ${first.alike.says} (${names.join(', ')}${more})`;
}

function cutTo(length: number, text: string): string {
  return text.length > length ? `${text.slice(0, length - 1)}…` : text;
}
