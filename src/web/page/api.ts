import type * as z from 'zod';
import type * as s from '../schemas.ts';

export type Overview = z.infer<typeof s.OVERVIEW>;
export type Need = z.infer<typeof s.NEED>;
export type Session = z.infer<typeof s.SESSION>;
export type Site = z.infer<typeof s.SITE>;
export type Row = z.infer<typeof s.ROW>;
export type Table = z.infer<typeof s.TABLE>;
export type Batches = z.infer<typeof s.BATCHES>;
export type Batch = z.infer<typeof s.BATCH>;
export type Plan = z.infer<typeof s.PLAN>;
export type Acted = z.infer<typeof s.ACTED>;
export type OneJob = z.infer<typeof s.ONE_JOB>;
export type Whys = z.infer<typeof s.WHY>;
export type Usage = z.infer<typeof s.USAGE>;
export type Log = z.infer<typeof s.LOG>;
export type Pool = z.infer<typeof s.POOL>;
export type Credential = z.infer<typeof s.CREDENTIAL>;
export type Dag = z.infer<typeof s.DAG>;
export type Picture = z.infer<typeof s.PICTURE>;
export type Runs = z.infer<typeof s.RUNS>;
export type EventLine = z.infer<typeof s.EVENT_LINE>;
export type Sample = z.infer<typeof s.SAMPLE>;
export type ActionName = (typeof s.ACTIONS)[number];
export interface Choice {
  readonly jobs?: readonly string[];
  readonly clusters?: readonly number[];
  readonly box?: string;
}

const KEY = 'gryphus-key';

/**
 * Takes the key out of the address, so that it is neither seen nor kept in the browser's history. One that the server does
 * not know is not taken: any page can lead here with an address of its own.
 */
export async function takeKey(): Promise<void> {
  const [, key] = /^#key=([\w-]+)$/.exec(location.hash) ?? [];
  if (key === undefined) return;
  history.replaceState(undefined, '', '/#/');
  const answer = await fetch('/api/v1/session', { headers: { 'x-gryphus-key': key } }).catch(() => undefined);
  if (answer?.ok) localStorage.setItem(KEY, key);
}

/** Resolves when another tab of this browser has logged in. */
export function nextLogin(): Promise<void> {
  return new Promise((resolve) => {
    const look = ({ key }: StorageEvent): void => {
      if (key !== KEY) return;
      window.removeEventListener('storage', look);
      resolve();
    };
    window.addEventListener('storage', look);
  });
}

/** What the server said was wrong. `status` 0: it did not answer. */
export class ApiError extends Error {
  readonly status: number;
  readonly suggestions: readonly string[];

  constructor(status: number, message: string, suggestions: readonly string[] = []) {
    super(message);
    this.status = status;
    this.suggestions = suggestions;
  }
}

/** The raw answer of a request; throws an ApiError unless it is good. */
export async function ask(path: string, how: RequestInit = {}): Promise<Response> {
  const headers = { ...(how.headers as Record<string, string>), 'x-gryphus-key': localStorage.getItem(KEY) ?? '' };
  let response: Response;
  try {
    response = await fetch(`/api/v1${path}`, { ...how, headers });
  } catch (thrown) {
    if (how.signal?.aborted) throw thrown;
    throw new ApiError(0, 'The server does not answer.');
  }
  if (response.ok) return response;
  const said = (await response.json().catch(() => ({}))) as { message?: string; suggestions?: string[] };
  throw new ApiError(response.status, said.message ?? `status ${response.status}`, said.suggestions ?? []);
}

/** What a form's field holds. */
export function fieldOf(form: HTMLFormElement, name: string): string {
  const value = new FormData(form).get(name);
  return typeof value === 'string' ? value : '';
}

export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  return (await ask(path, signal ? { signal } : {})).json() as Promise<T>;
}

export async function post<T>(path: string, body: object = {}): Promise<T> {
  const headers = { 'content-type': 'application/json' };
  return (await ask(path, { method: 'POST', headers, body: JSON.stringify(body) })).json() as Promise<T>;
}
