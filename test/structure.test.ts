import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';

/** Rooms by rank, lowest first: a file imports only from its own room and from rooms of a lower rank. */
const RANKS = [
  ['errors', 'log'],
  ['classad', 'util', 'user-log'],
  ['job'],
  ['site'],
  ['submit', 'credentials', 'transport', 'backends', 'notify'],
  ['config', 'queue', 'staging', 'reverse-connection'],
  ['enqueue', 'jobmanager', 'pool'],
  ['gram'],
  ['gridmanager', 'dag'],
  ['broker'],
  ['glidein'],
  ['scheduler'],
  ['client'],
  ['index'],
  ['commands'],
  ['bin'],
];
/** The rooms of the pool, and those of them that each may import from. */
const POOL: Readonly<Record<string, readonly string[]>> = {
  wire: [],
  host: ['wire'],
  worker: ['wire', 'host'],
  'central-manager': ['wire', 'host'],
  // The pool as a site: what the rest of the agent sees.
  '': ['wire', 'host'],
};
const RANK = new Map(RANKS.flatMap((rooms, rank) => rooms.map((room) => [room, rank] as const)));

/** Outside packages that only one room may import. */
const OWNED: Readonly<Record<string, readonly string[]>> = {
  ioredis: ['queue'],
  bullmq: ['queue'],
  ssh2: ['transport'],
  '@oclif/core': ['commands', 'bin'],
  'node-forge': ['credentials'],
  nodemailer: ['notify'],
};

const SRC = resolve(import.meta.dirname, '../src');
const files = readdirSync(SRC, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts'))
  .sort();
const roomOf = (file: string) => file.split('/')[0]?.replace(/\.ts$/, '') ?? '';

function imports(file: string): string[] {
  const text = readFileSync(join(SRC, file), 'utf8');
  return [...text.matchAll(/(?:\bfrom\s+|\bimport\s*\(\s*|^import\s+)'([^']+)'/gm)].map((found) => found[1] ?? '');
}

describe('the rooms', () => {
  it('all have a rank', () => {
    expect(files.map(roomOf).filter((room) => !RANK.has(room))).toEqual([]);
  });

  it('import downwards only', () => {
    const upwards = files.flatMap((file) => {
      const room = roomOf(file);
      return imports(file)
        .filter((to) => to.startsWith('.'))
        .map((to) => relative(SRC, resolve(SRC, dirname(file), to)))
        .filter((to) => roomOf(to) !== room && (RANK.get(roomOf(to)) ?? 99) >= (RANK.get(room) ?? -1))
        .map((to) => `${file} → ${to}`);
    });
    expect(upwards).toEqual([]);
  });

  it('share values in the queue through its tables only', () => {
    const others = files.filter((file) => file !== 'queue/table.ts');
    const direct = others.filter((file) => /\bkv\.(get|set|list|delete)\(/.test(readFileSync(join(SRC, file), 'utf8')));
    expect(direct).toEqual([]);
  });

  it('believe nothing that they parse: a schema or a check says what it is', () => {
    const believed = files.filter((file) =>
      /JSON\.parse\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)\)*\s+as\b|:\s*(?!unknown\b)[A-Z][\w<>[\], |]*\s*=\s*JSON\.parse\(/.test(
        readFileSync(join(SRC, file), 'utf8'),
      ),
    );
    expect(believed).toEqual([]);
  });

  it('of the pool import from their neighbours only', () => {
    const poolRoom = (path: string) => (path.match(/^pool\/(?:([^/]+)\/)?/) ?? [])[1] ?? '';
    const strangers = files
      .filter((file) => roomOf(file) === 'pool')
      .flatMap((file) => imports(file).map((to) => ({ file, to })))
      .filter(({ to }) => to.startsWith('.'))
      .map(({ file, to }) => ({ file, to: relative(SRC, resolve(SRC, dirname(file), to)) }))
      .filter(({ to }) => roomOf(to) === 'pool')
      .filter(({ file, to }) => {
        const [from, at] = [poolRoom(file), poolRoom(to)];
        return at !== from && !POOL[from]?.includes(at);
      })
      .map(({ file, to }) => `${file} → ${to}`);
    expect(strangers).toEqual([]);
  });

  it('leave the command line nothing but the API, and what has no state', () => {
    const allowed = new Set(['commands', 'index', 'errors', 'job', 'classad', 'user-log', 'util']);
    const around = files
      .filter((file) => roomOf(file) === 'commands')
      .flatMap((file) => imports(file).map((to) => ({ file, to })))
      .filter(
        ({ file, to }) => to.startsWith('.') && !allowed.has(roomOf(relative(SRC, resolve(SRC, dirname(file), to)))),
      )
      .map(({ file, to }) => `${file} → ${to}`);
    expect(around).toEqual([]);
  });

  it('keep what they own to themselves', () => {
    const strangers = files.flatMap((file) =>
      imports(file)
        .filter((name) => OWNED[name] && !OWNED[name].includes(roomOf(file)))
        .map((name) => `${file} → ${name}`),
    );
    expect(strangers).toEqual([]);
  });

  it('import nothing at all in classad', () => {
    const outside = files
      .filter((file) => roomOf(file) === 'classad')
      .flatMap((file) => imports(file).map((to) => ({ file, to })))
      .filter(
        ({ file, to }) => !to.startsWith('.') || roomOf(relative(SRC, resolve(SRC, dirname(file), to))) !== 'classad',
      );
    expect(outside).toEqual([]);
  });

  it('hold files of one idea', () => {
    const tables = /(corpus|table|grammar|builtins|life)/;
    const long = files
      .map((file) => ({ file, lines: readFileSync(join(SRC, file), 'utf8').trimEnd().split('\n').length }))
      .filter(({ file, lines }) => lines > 400 && !tables.test(file));
    expect(long).toEqual([]);
  });
});

/** Private words of earlier versions, and the terms that replaced them (docs/ARCHITECTURE.md, glossary). */
const RETIRED: Readonly<Record<string, string>> = {
  desk: 'central manager',
  lane: 'work loop, task runner',
  bid: 'candidate',
  manners: 'back-off',
  deed: 'action',
  burials: 'dead workers',
  bury: 'fence',
  homecoming: 'result transfer',
  wayhome: 'reverse connection',
  crew: 'pilot tracker',
  gauge: 'credential status',
  unheard: 'unsupported requests',
  mend: 'remedy',
  survey: 'capacity poll',
};

it('words that were given up do not come back', () => {
  const back = files.flatMap((file) => {
    const parts = `${file}\n${readFileSync(join(SRC, file), 'utf8')}`.match(/[A-Z]?[a-z]+|[A-Z]+(?![a-z])/g) ?? [];
    const found = new Set(parts.map((part) => part.toLowerCase()));
    return Object.entries(RETIRED).flatMap(([word, instead]) =>
      found.has(word) || found.has(`${word}s`) ? [`${file}: ${word} (say: ${instead})`] : [],
    );
  });
  expect(back).toEqual([]);
});
