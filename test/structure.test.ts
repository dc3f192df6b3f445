import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';

/** What any module may import; they import none but each other. */
const COMMON = ['errors', 'util', 'log'];

/**
 * The modules, in three storeys, and for each the modules that it may import. A directory within a module that is named
 * here is a module of its own. The agent loads what stands beside it only when it is used: see `LOADED_LATER`.
 */
const STOREYS: Readonly<Record<'languages' | 'agent' | 'beside', Readonly<Record<string, string>>>> = {
  // Text to meaning and back; no processes, no queue. `job` is the model that the agent and the submit language share.
  languages: {
    classad: '',
    'user-log': '',
    job: 'classad user-log',
    submit: 'classad job',
    'batch-script': 'job submit',
    'dag/language': 'submit',
  },
  agent: {
    site: 'job',
    transport: '',
    backends: 'site',
    'credentials/x509': '',
    credentials: 'job credentials/x509',
    config: 'job classad backends credentials',
    notify: 'job config credentials',
    queue: 'job site credentials notify',
    staging: 'job site credentials credentials/x509',
    'credentials/inventory': 'job config credentials queue',
    jobmanager: 'job site backends staging transport',
    'open-site': 'site config credentials credentials/x509 jobmanager transport',
    'site-check': 'job site backends config staging',
    enqueue: 'job submit batch-script backends config credentials queue staging',
    dag: 'job submit dag/language user-log config enqueue queue',
    gridmanager: 'job submit site backends config credentials queue staging transport open-site site-check',
    broker: 'job classad site backends config queue',
    scheduler: 'job classad submit user-log config credentials credentials/inventory notify queue enqueue dag broker',
    backup: 'config queue staging',
    client:
      'backup job submit user-log site backends config credentials credentials/inventory credentials/x509 notify queue staging transport open-site site-check enqueue dag broker',
    index: 'backup job batch-script user-log backends config credentials queue client',
    // The live page: a server over the API.
    web: 'job user-log config index',
    // The command line: the API, and what has no state.
    'command-server': 'config',
    commands: 'job classad user-log index web command-server',
    bin: 'commands',
  },
  beside: {
    'credentials/gsi': 'credentials credentials/x509',
    'credentials/myproxy': 'credentials credentials/gsi credentials/x509',
    gram: 'job site config credentials credentials/gsi credentials/x509 staging',
    'reverse-connection': 'transport',
    // The proxy of running jobs: in the pool's workers, and a program of its own at other sites.
    'io-proxy': 'job site',
    'pool/wire': 'job classad site reverse-connection',
    'pool/host': 'job config credentials credentials/x509 staging pool/wire',
    // The owner of a worker's machine.
    'pool/owner': 'job classad config pool/wire',
    'pool/worker': 'job classad site staging reverse-connection io-proxy pool/wire pool/host pool/owner',
    'pool/central-manager': 'job classad site config queue staging reverse-connection pool/wire pool/host',
    // The pool as a site: what the rest of the agent sees.
    pool: 'job site config staging reverse-connection pool/wire pool/host',
    glidein: 'job classad config queue staging enqueue pool pool/wire pool/host',
    // Other pools, by agreement: a gateway beside the pool.
    flock:
      'job classad site config queue staging reverse-connection pool pool/wire pool/host pool/worker pool/central-manager',
  },
};

/** The few links from the agent to what stands beside it. */
const DOORS: Readonly<Record<string, string>> = {
  staging: 'credentials/gsi',
  credentials: 'credentials/myproxy',
  'open-site': 'gram',
  gridmanager: 'pool pool/host pool/wire reverse-connection io-proxy',
  scheduler: 'glidein pool pool/host',
  client: 'credentials/myproxy flock glidein pool pool/host pool/owner pool/wire',
  index: 'glidein pool/wire',
};

/**
 * The processes of the agent, and what each may load at its start of what stands beside the agent: the paths and tokens
 * of the pool. The Scheduler keeps the pool and the pilots, so it loads their clients.
 */
const LOADED_LATER: Readonly<Record<string, RegExp>> = {
  'gridmanager/main.ts': /^pool\/(host\/places|wire\/(tokens|auth))\.ts$/,
  'jobmanager/client.ts': /^$/,
  'dag/dag-manager.ts': /^$/,
  'client/gryphus.ts': /^pool\/host\/(places|pid-files)\.ts$/,
  'scheduler/main.ts': /^(glidein|pool\/(central-manager-client|port-news|host|wire))/,
};

const ALL: Readonly<Record<string, string>> = Object.assign(
  Object.fromEntries(COMMON.map((one) => [one, ''])),
  ...Object.values(STOREYS),
);
const BESIDE = new Set(Object.keys(STOREYS.beside));

/** Outside packages that only one module may import. */
const OWNED: Readonly<Record<string, readonly string[]>> = {
  ioredis: ['queue'],
  bullmq: ['queue'],
  ssh2: ['transport'],
  '@oclif/core': ['commands', 'bin'],
  'node-forge': ['credentials'],
  nodemailer: ['notify'],
  fastify: ['web'],
};

const SRC = resolve(import.meta.dirname, '../src');
const files = readdirSync(SRC, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts'))
  .sort();
const topOf = (file: string) => file.split('/')[0]?.replace(/\.ts$/, '') ?? '';
const moduleOf = (file: string) => {
  const within = file.split('/').slice(0, 2).join('/');
  return within in ALL ? within : topOf(file);
};

const IMPORT = /(?:\bfrom\s+|\bimport\s*\(\s*|^import\s+)'([^']+)'/gm;
/** An import that runs code when the file is loaded. */
const AT_ONCE = /^(?:import|export)\s+(?!type\b)(?:[^'";]*?\sfrom\s+)?'([^']+)'/gm;

function imports(file: string, pattern = IMPORT): string[] {
  return [...readFileSync(join(SRC, file), 'utf8').matchAll(pattern)].map((found) => found[1] ?? '');
}

/** Our own files that this one imports, as paths from src. */
function ownImports(file: string, pattern = IMPORT): string[] {
  return imports(file, pattern)
    .filter((to) => to.startsWith('.'))
    .map((to) => relative(SRC, resolve(SRC, dirname(file), to)));
}

describe('the modules', () => {
  it('all have a storey', () => {
    expect(files.map(moduleOf).filter((one) => !(one in ALL))).toEqual([]);
  });

  it('import from their neighbours only', () => {
    const mayImport = (from: string) =>
      new Set([from, ...COMMON, ...[ALL, DOORS].flatMap((t) => (t[from] ?? '').split(' '))]);
    const strangers = files.flatMap((file) => {
      const may = mayImport(moduleOf(file));
      return ownImports(file)
        .filter((to) => !may.has(moduleOf(to)))
        .map((to) => `${file} → ${to}`);
    });
    expect(strangers).toEqual([]);
  });

  it('have only neighbours that they use', () => {
    const used = new Set(files.flatMap((file) => ownImports(file).map((to) => `${moduleOf(file)} → ${moduleOf(to)}`)));
    const idle = [ALL, DOORS].flatMap((table) =>
      Object.entries(table).flatMap(([from, list]) =>
        list.split(' ').flatMap((to) => (to === '' || used.has(`${from} → ${to}`) ? [] : [`${from} → ${to}`])),
      ),
    );
    expect(idle).toEqual([]);
  });

  it('form no circle', () => {
    const ends = (one: string, path: readonly string[]): readonly string[] =>
      path.includes(one)
        ? [[...path.slice(path.indexOf(one)), one].join(' → ')]
        : (ALL[one] ?? '').split(' ').flatMap((to) => (to === '' ? [] : ends(to, [...path, one])));
    expect(Object.keys(ALL).flatMap((one) => ends(one, []))).toEqual([]);
  });

  it('of the languages and the agent reach those beside the agent through few doors', () => {
    const within = { ...STOREYS.languages, ...STOREYS.agent };
    const known = Object.entries(within).filter(([, list]) => list.split(' ').some((to) => BESIDE.has(to)));
    expect(known).toEqual([]);
    expect(Object.keys(DOORS).filter((one) => !(one in within))).toEqual([]);
  });

  it.each(Object.keys(LOADED_LATER))('beside the agent are not loaded by %s before they are used', (main) => {
    const loadedBy = new Map([[main, '']]);
    for (const file of loadedBy.keys())
      for (const to of ownImports(file, AT_ONCE)) if (!loadedBy.has(to)) loadedBy.set(to, file);
    const early = [...loadedBy].filter(([file]) => BESIDE.has(moduleOf(file)) && !LOADED_LATER[main]?.test(file));
    expect(early.map(([file, by]) => `${by} → ${file}`)).toEqual([]);
  });

  it('load no command, and no API, before a command is called', () => {
    const loaded = new Set(['commands/main.ts']);
    for (const file of loaded) for (const to of ownImports(file, AT_ONCE)) loaded.add(to);
    const later = new Set(['index.ts', ...ownImports('commands/registry.ts')]);
    expect([...loaded].filter((file) => later.has(file))).toEqual([]);
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

  it('keep what they own to themselves', () => {
    const strangers = files.flatMap((file) =>
      imports(file)
        .filter((name) => OWNED[name] && !OWNED[name].includes(topOf(file)))
        .map((name) => `${file} → ${name}`),
    );
    expect(strangers).toEqual([]);
  });

  it.each(['classad', 'user-log'])('import nothing at all in %s', (name) => {
    const outside = files
      .filter((file) => moduleOf(file) === name)
      .flatMap((file) => imports(file).map((to) => ({ file, to })))
      .filter(
        ({ file, to }) => !to.startsWith('.') || moduleOf(relative(SRC, resolve(SRC, dirname(file), to))) !== name,
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
  room: 'module, state, space, capacity',
  parting: 'incarnation',
  standing: 'status',
  stray: 'stale copy',
  strange: 'unknown',
  judge: 'classify',
};

/** Where a word is one of a format that is not ours: OpenMetrics' type of a metric. */
const FOREIGN = new Set(['web/metrics.ts: gauge']);

it('words that were given up do not come back', () => {
  const back = files.flatMap((file) => {
    const parts = `${file}\n${readFileSync(join(SRC, file), 'utf8')}`.match(/[A-Z]?[a-z]+|[A-Z]+(?![a-z])/g) ?? [];
    const found = new Set(parts.map((part) => part.toLowerCase()));
    return Object.entries(RETIRED).flatMap(([word, instead]) =>
      (found.has(word) || found.has(`${word}s`)) && !FOREIGN.has(`${file}: ${word}`)
        ? [`${file}: ${word} (say: ${instead})`]
        : [],
    );
  });
  expect(back).toEqual([]);
});
