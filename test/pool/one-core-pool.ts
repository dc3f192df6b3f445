import type { AttrTexts } from '../../src/job/attrs.ts';
import type { AttemptKey } from '../../src/job/ids.ts';
import type { AttemptRequest } from '../../src/pool/wire/client-wire.ts';
import { CentralManager } from '../../src/pool/central-manager/central-manager.ts';
import { recover } from '../../src/pool/central-manager/central-manager-journal.ts';
import { SHARING_RULES, type SharingRules } from '../../src/pool/central-manager/sharing-rules.ts';
import type { FromCentralManager } from '../../src/pool/wire/wire.ts';
import type { Ending } from '../../src/site/contract.ts';
import { until } from '../agent/agent.ts';
import { JUST_TRUE } from './just-true.ts';

const SIZE = { cpus: 1, memoryMb: 1000, diskKb: 1e6, gpus: 0 };

function request(i: number, ad: AttrTexts): AttemptRequest {
  return {
    key: `a.${i}.0.1`,
    owner: 'me',
    ad: { Requirements: 'true', Rank: '0', RequestCpus: '1', Owner: '"me"', ...ad },
    size: { cpus: 1, memoryMb: 100, diskKb: 0, gpus: 0 },
    prio: 0,
    lease: 2400,
    spec: JUST_TRUE,
  };
}

/** A central manager with one worker, of one core unless said otherwise, which obeys. */
export class OneCorePool {
  now = 1_000_000;
  readonly told: FromCentralManager[] = [];
  readonly centralManager = new CentralManager(
    {
      journal: { add: () => undefined, whenSaved: (call) => call() },
      toWorker: (_, message) => this.told.push(message),
      toClient: () => undefined,
      now: () => this.now,
      clock: () => this.now,
      log: () => undefined,
    },
    recover([]),
  );

  constructor(ad: AttrTexts, rules: SharingRules = SHARING_RULES, cpus = 1) {
    this.centralManager.rules = rules;
    const about = { instance: 'w', token: 't', site: 's', boot: 'b', size: { ...SIZE, cpus, memoryMb: 1000 * cpus } };
    this.centralManager.join(this.centralManager.collector.make(about, { Requirements: 'true', ...ad }, 'w', 'w'), []);
  }

  submit(i: number, ad: AttrTexts = {}, more: Partial<AttemptRequest> = {}): void {
    const one = { ...request(i, ad), ...more };
    this.centralManager.prepare('c', [one]);
    this.centralManager.commit([one.key], () => undefined);
  }

  of(t: FromCentralManager['t']): string[] {
    return this.told.flatMap((message) => (message.t === t && 'key' in message ? [message.key] : []));
  }

  async starts(i: number): Promise<void> {
    await until(`the start of ${i}`, () => this.of('start').includes(`a.${i}.0.1`) || undefined);
    this.centralManager.hear('w', { t: 'started', key: `a.${i}.0.1`, at: this.now / 1000 }, Buffer.alloc(0));
  }

  ends(i: number, how: Ending['how'] = { kind: 'exited', code: 0 }): void {
    const key: AttemptKey = `a.${i}.0.1`;
    this.centralManager.hear('w', { t: 'ended', key, ending: { how, startedAt: 1, endedAt: 2 } }, Buffer.alloc(0));
  }

  /** One tick of the central manager's clock, and everything that follows from it. */
  async tick(seconds = 0): Promise<void> {
    this.now += seconds * 1000;
    this.centralManager.tick();
    for (let turn = 0; turn < 3; turn++) await new Promise((resume) => setImmediate(resume));
  }
}
