import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { AttemptKey } from '../../src/job/ids.ts';
import type { FromWorker, RunSpec } from '../../src/pool/wire/wire.ts';
import { Accounts } from '../../src/pool/worker/accounts.ts';
import { Containers } from '../../src/pool/worker/containers.ts';
import { ExecuteDir } from '../../src/pool/worker/execute-dir.ts';
import { JobUsers } from '../../src/pool/worker/job-users.ts';
import { Startd } from '../../src/pool/worker/startd.ts';
import { Strangers } from '../../src/pool/worker/strangers.ts';
import type { Ending } from '../../src/site/contract.ts';
import { ownUser } from '../../src/util/own-user.ts';
import { until } from '../agent/agent.ts';
import { SCRIPTS } from '../pool/scripts.ts';

const SIZE = { cpus: 32, memoryMb: 4000, diskKb: 1e6, gpus: 0 };
const PATH = '/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin';

/** What became of a stranger's job. */
export interface StrangersEnd {
  readonly how: Ending['how'];
  readonly stdout: string;
  readonly stderr: string;
}

/** A worker that runs jobs of other pools, as its own user can. `dir`: a directory that others can reach. */
export class StrangerWorker {
  readonly dir: string;
  readonly #startd: Startd;
  readonly #said: FromWorker[] = [];
  readonly #texts = new Map<string, readonly [string, string]>();

  constructor(dir: string, hidden: readonly string[], runAs = 'auto', network = false) {
    this.dir = join(dir, 'worker');
    mkdirSync(this.dir, { mode: 0o700, recursive: true });
    const { uid, username } = ownUser();
    const isRoot = uid === 0;
    const users = new JobUsers({ runAs: () => 'owner', isRoot, self: () => username, path: PATH });
    const execute = new ExecuteDir({ configured: join(dir, 'execute'), workerDir: this.dir, instance: 'one' });
    const strangers = new Strangers({
      isRoot,
      uid,
      userName: username,
      path: PATH,
      hidden: [...hidden, this.dir],
      execute: execute.path,
      waiter: join(this.dir, 'waiter'),
      account: (wanted, used) => users.forStranger(wanted, used),
      openExecute: () => execute.open(),
    });
    this.#startd = new Startd({
      dir: this.dir,
      machine: { size: SIZE, ad: { Requirements: 'true' }, limitMemory: false },
      env: { PATH },
      scripts: SCRIPTS,
      sharesHome: false,
      accounts: new Accounts(users, execute, strangers),
      containers: new Containers({ dir: this.dir, env: {}, environment: {}, log: () => undefined }),
      pull: () => () => Promise.reject(new Error('nothing is to be fetched')),
      proxyOf: (name) => name,
      say: (message, bytes) => {
        this.#said.push(message);
        if (message.t === 'ended' && message.inline && bytes)
          this.#texts.set(message.key, [
            Buffer.from(bytes).toString('utf8', 0, message.inline.stdout),
            Buffer.from(bytes).toString('utf8', message.inline.stdout),
          ]);
      },
      log: () => undefined,
    });
    const ad = { FlockFrom: '"p"', FlockRunAs: `"${runAs}"`, FlockNetwork: String(network), Requirements: 'true' };
    this.#startd.take({ t: 'kind', id: 'k', ad });
  }
  /** The directory of an attempt. */
  place(key: AttemptKey): string {
    return join(this.dir, '..', 'execute', 'one', key);
  }

  start(key: AttemptKey, script: string, more: Partial<RunSpec> = {}, memoryMb = 200): void {
    const spec: RunSpec = {
      executable: { kind: 'there', path: '/bin/sh' },
      args: ['-c', script],
      env: {},
      inputs: [],
      joinStderr: false,
      vacateSeconds: 2,
      ...more,
    };
    const size = { cpus: 1, memoryMb, diskKb: 0, gpus: 0 };
    this.#startd.take({ t: 'start', key, claim: key, kind: 'k', size, spec, lease: 600 });
  }

  take(order: Parameters<Startd['take']>[0]): void {
    this.#startd.take(order);
  }

  /** What it has written so far. */
  output(key: AttemptKey): string {
    return readFileSync(join(this.place(key), 'stdout'), 'utf8');
  }

  end(key: AttemptKey): Promise<StrangersEnd> {
    return until(`the end of ${key}`, () => {
      const said = this.#said.find((message) => 'key' in message && message.key === key && message.t !== 'started');
      if (said?.t === 'gone') throw new Error(said.message);
      if (said?.t !== 'ended') return undefined;
      const [stdout = '', stderr = ''] = this.#texts.get(key) ?? [];
      return { how: said.ending.how, stdout, stderr };
    });
  }

  async run(key: AttemptKey, script: string, more: Partial<RunSpec> = {}): Promise<StrangersEnd> {
    this.start(key, script, more);
    const ended = await this.end(key);
    this.#startd.take({ t: 'forget', keys: [key] });
    return ended;
  }

  close(): void {
    this.#startd.close();
  }
}
