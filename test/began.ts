import { appendFileSync } from 'node:fs';
import { expect } from 'vitest';
import { putAside } from './download-env.ts';

putAside();
const path = process.env['GRYPHUS_TEST_REPORT'];
if (path !== undefined)
  appendFileSync(path, `${JSON.stringify({ file: expect.getState().testPath, pid: process.pid })}\n`);
