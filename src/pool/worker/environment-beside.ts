import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { pathOrStart } from '../../job/start-directory.ts';
import { readString } from '../../job/values.ts';
import { CHIRP_CONFIG } from '../../site/chirp.ts';
import { AD_FILES } from './ad-files.ts';
import { jobAdOf } from './job-ad-of.ts';
import { variablesAt } from './job-script.ts';
import type { Run } from './run.ts';

/**
 * The environment of what a user starts beside a running job: the job's own, as its program got it. Of an earlier worker's
 * run neither its slot nor its proxy is known.
 */
export function environmentBeside(run: Run): Readonly<Record<string, string>> {
  const { key, dir, record, received, proxy, variables } = run;
  const { spec } = record;
  const own = Object.entries(spec.env).map(([name, value]) => {
    const path = pathOrStart(value);
    if (path === undefined) return [name, value];
    return [name, spec.shared || spec.cwd !== undefined ? path : dir.work];
  });
  const ad = spec.remoteIo === true && received ? jobAdOf(run) : {};
  const submitDir = readString({ get: (name) => ad[name] ?? undefined }, 'Iwd');
  return {
    ...Object.fromEntries(own),
    ...variablesAt(key, {
      scratch: dir.work,
      proxy,
      ads: existsSync(join(dir.work, AD_FILES.job)),
      slot: received?.start.slot,
      chirp: spec.ioProxy === true && existsSync(join(dir.work, CHIRP_CONFIG)),
      ...(submitDir === undefined ? {} : { submitDir }),
      variables,
      gpus: record.gpus,
    }),
  };
}
