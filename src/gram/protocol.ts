/**
 * GRAM2's messages (Globus Toolkit 5, `globus_gram_protocol`): HTTP frames whose headers have a fixed order and case.
 */

/** Job states, one bit each (`globus_gram_protocol_job_state_t`). */
export const STATE = {
  pending: 1,
  active: 2,
  failed: 4,
  done: 8,
  suspended: 16,
  unsubmitted: 32,
  stageIn: 64,
  stageOut: 128,
} as const;

/** The signals that we send (`globus_gram_protocol_job_signal_t`). */
const SIGNAL = { commitRequest: 5, stdioUpdate: 7, commitEnd: 10 } as const;
export type Signal = keyof typeof SIGNAL;

/** A reply or a callback: its HTTP status and its attributes. */
export interface GramMessage {
  readonly http: number;
  readonly fields: ReadonlyMap<string, string>;
}

/** Asks for callbacks on every state. */
const ALL_STATES = 1_048_575;

/** A quoted value, as the protocol expects in RSL and queries. */
export function quote(value: string): string {
  return `"${value.replaceAll(/["\\]/g, '\\$&')}"`;
}

/** The job manager's parser accepts exactly these headers, in this order and case. */
export function frame(path: string, host: string, body: string): Buffer {
  const bytes = Buffer.from(body);
  const head = `POST ${path} HTTP/1.1\r\nHost: ${host}\r\nContent-Type: application/x-globus-gram\r\nContent-Length: ${bytes.length}\r\n\r\n`;
  return Buffer.concat([Buffer.from(head), bytes]);
}

/** The body of a job request. */
export function jobRequest(rsl: string, callbackUrl: string): string {
  return `protocol-version: 2\r\njob-state-mask: ${ALL_STATES}\r\ncallback-url: ${callbackUrl === '' ? '""' : callbackUrl}\r\nrsl: ${quote(rsl)}\r\n\0`;
}

/** The query that sends a signal; a blank must follow its number even without an argument. */
export function signalQuery(signal: Signal, argument = ''): string {
  return `signal ${SIGNAL[signal]} ${argument}`;
}

/** The body of a query to a job's contact: `status`, `cancel`, `renew`, or a signal. */
export function jobQuery(query: string): string {
  return `protocol-version: 2\r\n${quote(query)}\r\n\0`;
}

/** Reads `attribute: value` lines; values may be quoted. Other lines are ignored. */
export function readFields(body: string): ReadonlyMap<string, string> {
  const fields = new Map<string, string>();
  for (const found of body.matchAll(/^([A-Za-z0-9-]+):[ \t]*("(?:[^"\\]|\\[^])*"|[^\r\n\0]*)/gm)) {
    const [, name = '', value = ''] = found;
    fields.set(name, value.startsWith('"') ? value.slice(1, -1).replaceAll(/\\([^])/g, '$1') : value.trim());
  }
  return fields;
}

/** Reads the head of an answer: its status and the length of its body; `undefined` if it is malformed. */
export function readHead(head: string): { readonly http: number; readonly length: number } | undefined {
  const status = /^HTTP\/1\.[01] (\d{3})\b/.exec(head)?.[1];
  if (status === undefined) return undefined;
  return { http: Number(status), length: Number(/^content-length:[ \t]*(\d{1,9})/im.exec(head)?.[1] ?? 0) };
}

/** A numeric attribute; 0 if it is missing. */
export function numberOf(message: GramMessage, name: string): number {
  const value = Number(message.fields.get(name) ?? 0);
  return Number.isInteger(value) ? value : 0;
}
