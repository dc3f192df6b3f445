import { createHash } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { BlobIndex } from '../../src/staging/blobs.ts';
import { resolveInputs } from '../../src/staging/inputs.ts';
import { localFork } from '../conformance/grounds.ts';
import { freshKey, type Ground, run, shellJob, texts, Watch } from '../conformance/kit.ts';

const ODD = [
  '-rf',
  ' two  blanks ',
  'new\nline',
  'back\\slash \\0101',
  'é%41',
  "it's $(x)",
  'n'.repeat(200),
  '.hidden',
];
/** Of one process, so that the files' times are no evidence of who changed them. */
const HASHES = 'cd many && find . -type f -exec sha256sum --zero {} + | LC_ALL=C sort -z | tr "\\0" "\\1"';

let ground: Ground;
let directory: string;
beforeEach(async () => {
  ground = await localFork();
  directory = join(ground.scratch, 'many');
  mkdirSync(join(directory, 'deep/er'), { recursive: true });
  mkdirSync(join(directory, 'empty'));
  for (let i = 0; i < 150; i++) writeFileSync(join(directory, `f${i}`), `content of ${i}`);
  for (const name of ODD) writeFileSync(join(directory, 'deep/er', name), name);
  writeFileSync(join(directory, 'nothing'), '');
  writeFileSync(join(directory, 'large'), Buffer.alloc(100_000, 'x'));
  writeFileSync(join(directory, 'tool'), '#!/bin/sh\n');
  chmodSync(join(directory, 'tool'), 0o755);
});
afterEach(() => ground.close());

function expected(): string {
  const names = readdirSync(directory, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const contents: Record<string, string | Buffer> = {
    nothing: '',
    large: Buffer.alloc(100_000, 'x'),
    tool: '#!/bin/sh\n',
  };
  const lines = names.map(({ name, parentPath }) => {
    const content = contents[name] ?? (parentPath === directory ? `content of ${name.slice(1)}` : name);
    const below = `${parentPath}/${name}`.slice(directory.length + 1);
    return `${createHash('sha256').update(content).digest('hex')}  ./${below}\x01`;
  });
  return lines
    .map((line) => Buffer.from(line))
    .sort((a, b) => Buffer.compare(a, b))
    .join('');
}

async function hashesThere(prelude?: string): Promise<string | undefined> {
  const packs = join(ground.scratch, 'packs');
  const site = await ground.open({ packs, ...(prelude === undefined ? {} : { prelude }) });
  const key = freshKey();
  const inputs = await resolveInputs([directory], new BlobIndex());
  const modes = 'test -x many/tool && test ! -x many/f1 && test -d many/empty && ';
  await run(site, [shellJob(key, modes + HASHES, { inputs })]);
  const end = await new Watch(site).until(key, (report) => report.is === 'ended', 50_000);
  expect(end).toMatchObject({ how: { kind: 'exited', code: 0 } });
  const into = join(ground.scratch, key);
  const fetched = await site.fetch([{ key, outputs: 'new', stdout: true, stderr: false, into }]);
  await site.forget([key]);
  // Everything that was sent is gone from this disk.
  for (const name of existsSync(packs) ? readdirSync(packs) : []) expect(readdirSync(join(packs, name))).toEqual([]);
  return texts(fetched.get(key))['stdout'];
}

it('hundreds of small inputs go to a site as one archive, with any names, and once for all jobs', {
  timeout: 60_000,
}, async () => {
  expect(await hashesThere()).toBe(expected());
  const cache = () => readdirSync(join(ground.root, 'cache'));
  // The archive, the large file, and the shell's script if it is sent.
  expect(cache().length).toBeLessThan(5);
  const before = cache();
  expect(await hashesThere()).toBe(expected());
  expect(cache()).toEqual(before);
});

it('a site without tar gets them one by one', { timeout: 60_000 }, async () => {
  expect(await hashesThere('tar() { return 127; }')).toBe(expected());
  expect(readdirSync(join(ground.root, 'cache')).length).toBeGreaterThan(100);
});

it('a file that changed since it was looked at is refused, with its name', async () => {
  const site = await ground.open({ packs: join(ground.scratch, 'packs') });
  const inputs = await resolveInputs([directory], new BlobIndex());
  writeFileSync(join(directory, 'f77'), 'CONTENT of 77');
  const key = freshKey();
  const outcome = (await site.prepare([shellJob(key, 'true', { inputs })])).get(key);
  const message = `${join(directory, 'f77')} was changed while it was being sent.`;
  expect(outcome).toMatchObject({ ok: false, refusal: { kind: 'never', code: 'input-missing', message } });
});
