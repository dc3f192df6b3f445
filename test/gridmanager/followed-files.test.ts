import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { FollowedFiles } from '../../src/gridmanager/streaming/followed-files.ts';
import type { AttemptKey } from '../../src/job/ids.ts';
import type { FollowFiles } from '../../src/site/contract.ts';
import { GrownFiles } from '../../src/staging/grown-files.ts';
import { nameMatcher } from '../../src/util/name-patterns.ts';

const root = mkdtempSync(join(tmpdir(), 'gry-followed-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

/** The most bytes of a file in one answer of the site. */
const PIECE = 400;
let worlds = 0;

/** A job's directory at a site, what the site has told, and what has come home. */
class World {
  readonly key = `aaaaaaaaaa.${++worlds}.0.1` as AttemptKey;
  readonly there = new Map<string, string>();
  #told = new Map<string, number>();
  #spool = new GrownFiles(root);
  #home = this.#open();
  /** What had come of each file, by its last version. */
  readonly versions = new Map<string, number>();

  #open(): FollowedFiles {
    const isWanted = async () => nameMatcher(['*.out']);
    return new FollowedFiles({ key: this.key, patterns: ['*.out'], spool: this.#spool, isWanted });
  }

  siteRestarts(): void {
    this.#told.clear();
  }

  homeRestarts(): void {
    this.#home = this.#open();
  }

  /** Asks, and does not hear the answer. */
  lose(): void {
    this.#answer(this.#home.next(3, 1000));
    this.#home.unanswered();
  }

  /** Whether anything came. */
  async poll(): Promise<boolean> {
    const asked = this.#home.next(3, 1000);
    const { sizes, pieces } = this.#answer(asked);
    this.#home.answered();
    await this.#home.takeSizes(sizes);
    for (const piece of pieces) {
      const grown = await this.#home.takePiece(piece);
      if (!grown) continue;
      if (grown.version < (this.versions.get(grown.name) ?? 0)) throw new Error(`${grown.name} has an earlier version`);
      this.versions.set(grown.name, grown.version);
    }
    return sizes.length + pieces.length > 0;
  }

  #answer({ afresh, wanted }: FollowFiles) {
    if (afresh) this.#told.clear();
    const sizes = [...this.there].flatMap(([name, text]) => {
      const bytes = text.length;
      if (this.#told.get(name) === bytes) return [];
      this.#told.set(name, bytes);
      return [{ name, bytes }];
    });
    const pieces = wanted.map(({ name, offset }) => {
      const data = Buffer.from((this.there.get(name) ?? '').slice(offset, offset + PIECE), 'latin1');
      return { name, offset, data };
    });
    return { sizes, pieces };
  }

  get expected(): number {
    return this.#home.expected;
  }

  home(name: string): string | undefined {
    const path = this.#spool.path(this.key, name, this.versions.get(name) ?? 0);
    return existsSync(path) ? readFileSync(path, 'latin1') : undefined;
  }
}

describe('files that are followed', () => {
  const name = fc.constantFrom('a.out', 'b.out', 'c.out', 'none.txt');
  const step = fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({ do: fc.constant('append' as const), name, times: fc.integer({ min: 1, max: 60 }) }),
    },
    fc.record({ do: fc.constant('truncate' as const), name, to: fc.nat(1200) }),
    fc.record({ do: fc.constant('rewrite' as const), name, times: fc.nat(120) }),
    fc.record({ do: fc.constant('remove' as const), name }),
    { weight: 4, arbitrary: fc.record({ do: fc.constantFrom('poll' as const, 'lose' as const) }) },
    fc.record({ do: fc.constantFrom('homeRestarts' as const, 'siteRestarts' as const) }),
  );

  it('are home as they are there, whatever the job does to them and whoever crashes', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
        const world = new World();
        const { there } = world;
        let written = 0;
        // No two pieces of content are the same.
        const content = (times: number) => Array.from({ length: times }, () => `<${++written}>\n`).join('');
        for (const one of steps) {
          if (one.do === 'append') there.set(one.name, (there.get(one.name) ?? '') + content(one.times));
          else if (one.do === 'truncate') there.set(one.name, (there.get(one.name) ?? '').slice(0, one.to));
          else if (one.do === 'rewrite') there.set(one.name, content(one.times));
          else if (one.do === 'remove') there.delete(one.name);
          else await world[one.do]();
        }
        // A file of the same size as before is the same until it grows.
        for (const [file, text] of there) there.set(file, text + content(1));
        for (let turn = 0; await world.poll(); turn++) expect(turn).toBeLessThan(500);
        for (const [file, text] of there) expect(world.home(file)).toBe(file === 'none.txt' ? undefined : text);
        expect(world.expected).toBe(0);
      }),
      { numRuns: 25 },
    );
  }, 30_000);

  it('are kept once each, under names that no job chooses', async () => {
    const world = new World();
    const long = `${'é'.repeat(100)}.out`;
    for (const text of ['first\n', 'second\n', 'third, longer\n']) {
      world.there.set(long, text);
      world.there.set('up/up.out', text);
      while (await world.poll());
    }
    expect(world.home(long)).toBe('third, longer\n');
    expect(readdirSync(join(root, world.key)).map((file) => file.replace(/^[0-9a-f]{40}\./, ''))).toEqual(['2']);
  });

  it('of a site that sends what was not asked for are not kept', async () => {
    const spool = new GrownFiles(root);
    const key = 'aaaaaaaaaa.9999.0.1' as AttemptKey;
    const isWanted = async () => nameMatcher(['*.out']);
    const files = new FollowedFiles({ key, patterns: ['*.out'], spool, isWanted });
    await files.takeSizes([{ name: 'a.out', bytes: 5 }]);
    expect(await files.takePiece({ name: 'a.out', offset: 0, data: Buffer.from('early') })).toBeUndefined();
    expect(files.next(9, 1000).wanted).toEqual([{ name: 'a.out', offset: 0 }]);
    for (const piece of [
      { name: 'b.out', offset: 0 },
      { name: 'a.out', offset: 3 },
    ])
      expect(await files.takePiece({ ...piece, data: Buffer.from('other') })).toBeUndefined();
    expect(existsSync(join(root, key))).toBe(false);
  });
});
