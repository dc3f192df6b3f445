import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { asError, GryphusError } from '../errors.ts';
import type { Holder } from '../job/mark.ts';
import type { Channel, ChannelEnd, Transport } from '../transport/contract.ts';
import { oneLine } from '../util/plain-text.ts';
import { type SiteAnswer, type FileSink, NotOurs, readAnswer } from './answer.ts';
import type { Bundle } from './bundle.ts';
import { ByteReader, TooLong } from './byte-reader.ts';
import { type AgentPlace, entering, refusalReason } from './entering.ts';

const HELLO_MS = 60_000;
/** The most that log-in scripts may print, in characters, and the most that is kept of a line of standard error. */
const MOST_NOISE = 1 << 20;
const MOST_COMPLAINT = 2000;

/** The exit status at start if our programs are not at the site (entering.sh, jobmanager.sh). */
const NOT_THERE = 66;

export interface SessionPlace extends AgentPlace {
  readonly name: string;
  readonly transport: Transport;
  readonly bundle: () => Promise<Bundle>;
  /** The shell that runs the JobManager, such as `sh`. */
  readonly shell: string;
  readonly holder: Holder | undefined;
}

/** The exit status of a JobManager whose agent is served by another state directory (jobmanager.sh). */
const TAKEN_OVER = 76;
/** That of one that finds records of a later version there. */
const NEWER_RECORDS = 78;

/** A running JobManager and the channel to it. */
interface Running {
  readonly channel: Channel;
  readonly reader: ByteReader;
  readonly hello: SiteAnswer;
  readonly nonce: string;
  readonly complaints: string[];
  next: number;
}

/**
 * The long-lived JobManager of one site: started when needed, restarted when it has died, one exchange at a time. Every
 * exchange is idempotent by key, so if its answer was lost with its JobManager, the request is sent once more.
 */
export class Session {
  readonly #place: SessionPlace;
  #running: Running | undefined;
  #turn: Promise<unknown> = Promise.resolve();
  #closed = false;
  #news = 0;
  readonly #waiters = new Set<() => void>();
  /** Grows with every JobManager: a new one does not know what its predecessor reported. */
  generation = 0;
  /** Unexpected output of the site's log-in scripts. */
  noise = '';

  constructor(place: SessionPlace) {
    this.#place = place;
  }

  /** The first answer, with facts about the site; connects if needed. */
  hello(): Promise<SiteAnswer & { readonly nonce: string }> {
    return this.#inTurn(async () => {
      const running = await this.#started();
      return { ...running.hello, nonce: running.nonce };
    });
  }

  /**
   * One request and its answer. Errors (GryphusError): the transport's own, 'timeout' without an answer in `limitMs`,
   * 'protocol-error' if the JobManager died twice during it, or the other side is not ours or sends too much.
   */
  exchange(
    verb: string,
    bodies: readonly (string | Uint8Array)[],
    args: readonly (string | number)[] = [],
    limitMs = 120_000,
    sink?: FileSink,
  ): Promise<SiteAnswer> {
    return this.#inTurn(async () => {
      try {
        return await this.#ask(verb, bodies, args, limitMs, sink);
      } catch (thrown) {
        if (!(thrown instanceof JobManagerDied)) throw thrown;
      }
      try {
        return await this.#ask(verb, bodies, args, limitMs, sink);
      } catch (thrown) {
        throw thrown instanceof JobManagerDied ? thrown.asGryphusError(this.#place.name, verb) : thrown;
      }
    });
  }

  /** Resolves when the site has news, or after `ms`. News that arrived since `seen` counts. */
  async news(seen: number, ms: number): Promise<void> {
    if (this.#news !== seen || ms <= 0 || this.#closed) return;
    await new Promise<void>((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        this.#waiters.delete(done);
        resolve();
      };
      const timer = setTimeout(done, ms);
      this.#waiters.add(done);
    });
  }

  /** Whether a JobManager runs there, as far as its last exchange told. */
  get isRunning(): boolean {
    return this.#running !== undefined;
  }

  get newsCount(): number {
    return this.#news;
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const waiter of this.#waiters) waiter();
    await this.#turn.catch(() => undefined);
    const running = this.#running;
    this.#running = undefined;
    if (running === undefined) return;
    running.channel.stdin.end();
    const timer = setTimeout(() => running.channel.kill(), 3000);
    await running.channel.closed;
    clearTimeout(timer);
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const mine = this.#turn.then(work, work);
    this.#turn = mine.catch(() => undefined);
    return mine;
  }

  async #ask(
    verb: string,
    bodies: readonly (string | Uint8Array)[],
    args: readonly (string | number)[],
    limitMs: number,
    sink: FileSink | undefined,
  ): Promise<SiteAnswer> {
    const running = await this.#started();
    const parts = bodies.map((body) => (typeof body === 'string' ? Buffer.from(body) : body));
    const id = running.next++;
    const head = [id, verb, ...parts.map((part) => part.length), ...args].join(' ');
    return await this.#guard(running, limitMs, `${verb} of ${this.#place.name}`, async () => {
      const bytes = Buffer.concat([Buffer.from(`${head}\n`), ...parts]);
      if (!running.channel.stdin.write(bytes))
        await Promise.race([once(running.channel.stdin, 'drain'), running.channel.closed]);
      return await readAnswer(running.reader, id, sink);
    });
  }

  async #started(): Promise<Running> {
    if (this.#closed) throw new GryphusError('interrupted', `The connection to ${this.#place.name} was closed.`);
    if (this.#running !== undefined) return this.#running;
    const bundle = await this.#place.bundle();
    let first: unknown;
    try {
      return await this.#start(bundle);
    } catch (thrown) {
      // It was never installed there, or the site's cleaner deleted it.
      if (!(thrown instanceof JobManagerDied) || thrown.status !== NOT_THERE) throw this.#startError(thrown);
      first = thrown;
    }
    await this.#install(bundle, first);
    try {
      return await this.#start(bundle);
    } catch (thrown) {
      throw this.#startError(thrown);
    }
  }

  #startError(thrown: unknown): unknown {
    return thrown instanceof JobManagerDied ? thrown.asGryphusError(this.#place.name, 'start') : thrown;
  }

  async #start(bundle: Bundle): Promise<Running> {
    const { transport, agentId, shell, holder } = this.#place;
    const nonce = randomBytes(16).toString('hex');
    const bin = `./bin/${bundle.hash}`;
    const whole = `for file in ${bundle.names.join(' ')}; do [ -s "${bin}/$file" ] || exit ${NOT_THERE}; done`;
    const run = `exec ${shell} ${bin}/jobmanager.sh ${agentId} ${nonce}${holder ? ` ${holder.epoch} ${holder.name}` : ''}`;
    const channel = await transport.open([entering(this.#place, { make: false }), whole, run].join('\n'));
    const complaints: string[] = [];
    channel.stdin.on('error', () => undefined);
    void this.#listen(channel.stderr, complaints);
    const reader = new ByteReader(channel.stdout);
    const running: Running = { channel, reader, nonce, complaints, next: 1, hello: { lines: [], status: 0 } };
    const hello = await this.#guard(
      running,
      HELLO_MS,
      `the start of the JobManager of ${this.#place.name}`,
      async () => {
        const noise: string[] = [];
        let noisy = 0;
        for (;;) {
          const line = await reader.line();
          if (line === `gryphus-jobmanager 1 ${nonce}`) break;
          noise.push(line);
          complaints.push(line);
          noisy += line.length;
          if (noise.length > 1000 || noisy > MOST_NOISE)
            throw new NotOurs(noise.slice(0, 3).join(' / ').slice(0, 1000));
        }
        this.noise = noise.join('\n');
        return await readAnswer(reader, 0);
      },
    );
    this.#running = { ...running, hello };
    this.generation += 1;
    return this.#running;
  }

  async #install(bundle: Bundle, first: unknown): Promise<void> {
    const { transport, name } = this.#place;
    const stdin = `${entering(this.#place, { make: true })}${bundle.installer}`;
    const result = await transport.run('exec sh -s', { stdin, timeoutMs: HELLO_MS });
    if (result.code === 0 && result.stdout.toString().trimEnd().endsWith('installed')) return;
    const refused = refusalReason(result.stderr.toString().split('\n'));
    if (refused !== undefined) throw refusal(name, refused);
    const message = `${result.stderr.toString()} ${result.stdout.toString()}`.trim().slice(-500);
    const code = result.code === 74 ? 'disk-full' : 'protocol-error';
    throw new GryphusError(code, `The JobManager could not be installed on ${name}: ${message}`, {
      cause: first,
      suggestions: ["Set a directory there that is writable and has free space: `scratch` in the site's file."],
    });
  }

  /** Ends the JobManager if the work fails or takes too long, since the position in its stream is then unknown. */
  async #guard<T>(running: Running, limitMs: number, what: string, work: () => Promise<T>): Promise<T> {
    let timer: NodeJS.Timeout | undefined;
    try {
      const late = new Promise<never>((_, reject) => {
        timer = setTimeout(
          () => reject(new GryphusError('timeout', `No answer within ${Math.round(limitMs / 1000)} s: ${what}.`)),
          limitMs,
        );
      });
      return await Promise.race([work(), late]);
    } catch (thrown) {
      this.#running = undefined;
      running.channel.kill();
      if (thrown instanceof GryphusError) throw thrown;
      if (thrown instanceof TooLong) {
        throw new GryphusError(
          'protocol-error',
          `${this.#place.name} sent ${thrown.message}, in the answer to ${what}.`,
        );
      }
      // A frozen connection never reports that its channel is closed.
      const patience = delay(2000, { kind: 'signaled', signal: 'no end seen' } as const, { ref: false });
      const end = await Promise.race([running.channel.closed, patience]);
      if (end.kind === 'lost') {
        const { message } = asError(end.reason);
        throw new GryphusError('site-unreachable', `The connection to ${this.#place.name} was lost: ${message}.`, {
          cause: end.reason,
        });
      }
      throw new JobManagerDied(end, running.complaints, thrown);
    } finally {
      clearTimeout(timer);
    }
  }

  async #listen(stderr: Readable, complaints: string[]): Promise<void> {
    let held = '';
    try {
      for await (const chunk of stderr) {
        const lines = (held + String(chunk)).split('\n');
        held = lines.pop() ?? '';
        for (const line of lines) {
          if (line === 'gryphus: news') this.#announce();
          else if (line.trim() !== '') complaints.push(line.slice(0, MOST_COMPLAINT));
        }
        // A line without an end.
        held = held.slice(0, MOST_COMPLAINT);
        complaints.splice(0, Math.max(0, complaints.length - 20));
      }
    } catch {
      // The end of the channel itself tells more.
    }
  }

  #announce(): void {
    this.#news += 1;
    for (const waiter of this.#waiters) waiter();
  }
}

class JobManagerDied extends Error {
  override readonly name = 'JobManagerDied';
  readonly #complaints: readonly string[];
  readonly #how: string;
  /** Its exit status. */
  readonly status: number | undefined;

  constructor(end: Exclude<ChannelEnd, { kind: 'lost' }>, complaints: readonly string[], cause: unknown) {
    const how = end.kind === 'exited' ? `status ${end.code}` : end.signal;
    super(`The JobManager ended (${how}).`, { cause });
    this.#how = how;
    this.status = end.kind === 'exited' ? end.code : undefined;
    this.#complaints = complaints;
  }

  asGryphusError(site: string, doing: string): GryphusError {
    if (this.status === TAKEN_OVER) {
      return new GryphusError(
        'taken-over',
        `Site ${site} now belongs to this agent on another machine, where \`gryphus recover\` has taken it over.`,
        { suggestions: ['Follow the jobs there. To take them back: gryphus recover'] },
      );
    }
    const newer = this.#complaints.flatMap((line) => /gryphus-newer (.*)$/.exec(line)?.[1] ?? [])[0];
    if (this.status === NEWER_RECORDS && newer !== undefined) {
      return new GryphusError(
        'state-version',
        `A newer Gryphus has used site ${site} for this agent (${oneLine(newer)}).`,
        {
          suggestions: ['Use that newer Gryphus. The jobs there keep running.'],
        },
      );
    }
    const refused = refusalReason(this.#complaints);
    if (refused !== undefined) return refusal(site, refused);
    const heard = this.cause instanceof NotOurs ? [this.cause.message] : this.#complaints;
    const message = heard.slice(-5).join(' / ').slice(0, 500);
    return new GryphusError(
      'protocol-error',
      `The JobManager of ${site} ended (${this.#how}) at ${doing}${message === '' ? '.' : `: ${message}`}`,
      {
        cause: this,
        suggestions: [
          "Neither log-in scripts there nor `prelude` in the site's file may print or exit in a non-interactive shell.",
        ],
      },
    );
  }
}

/** Others could have replaced what we would run, or could do so later. */
function refusal(site: string, message: string): GryphusError {
  return new GryphusError('site-refused', `Nothing is run at ${site}, because ${oneLine(message)}.`, {
    suggestions: ["Fix that there, or set a directory of your own: `scratch` in the site's file."],
  });
}
