import type { Gryphus } from '../index.ts';
import { Hub } from './hub.ts';
import { JobTable } from './job-table.ts';
import { Logins } from './logins.ts';
import { Maps } from './maps.ts';
import { Plans } from './plan.ts';
import { Recent } from './recent.ts';
import { Samples } from './samples.ts';

/** What all requests share. */
export class Web {
  readonly gryphus: Gryphus;
  readonly version: string;
  readonly hub: Hub;
  readonly table: JobTable;
  readonly plans: Plans;
  readonly samples: Samples;
  readonly logins: Logins;
  readonly maps: Maps;
  /** Answers that take work or others' time are asked for once for all viewers. */
  readonly recent = new Recent();

  constructor(gryphus: Gryphus, version: string) {
    this.gryphus = gryphus;
    this.version = version;
    this.hub = new Hub(gryphus);
    this.table = new JobTable(gryphus, this.hub);
    this.plans = new Plans(gryphus, this.table);
    this.samples = new Samples(gryphus, this.hub);
    this.logins = new Logins(gryphus);
    this.maps = new Maps(gryphus);
  }

  async close(): Promise<void> {
    this.hub.close();
    this.table.close();
    this.samples.close();
    await this.gryphus.close();
  }
}
