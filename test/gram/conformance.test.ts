import { join } from 'node:path';
import { vi } from 'vitest';
import { AGENT, type Ground } from '../conformance/kit.ts';
import { testSite } from '../conformance/suite.ts';
import { missingPrograms } from '../sites/gatekeeper.ts';
import type { AuditableSite } from '../../src/site/audit.ts';
import { startGrid } from './kit.ts';

async function ground(): Promise<Ground> {
  const grid = await startGrid();
  let site: AuditableSite | undefined;
  return {
    name: 'GRAM',
    root: join(grid.dir, AGENT),
    scratch: grid.dir,
    patience: 90_000,
    async open() {
      site ??= await grid.open({ askEveryMs: 2000 });
      return site;
    },
    async closeSites() {
      await site?.close();
      site = undefined;
    },
    close: () => grid.stop(),
  };
}

// Each job costs the service several processes, and a busy machine has little capacity for them.
vi.setConfig({ testTimeout: 120_000 });

testSite({
  name: 'a GRAM service',
  makeSite: ground,
  skip: missingPrograms().length > 0,
  except: [
    'says what it is, and that it is well',
    "leaves the job's ads for the program, and takes them for no results of it",
    'names what among its outputs has no content, and brings the others',
    'carries large content once and brings large results home',
    'continues after its JobManager was killed',
    'sweeps what was prepared and never committed',
  ],
});
