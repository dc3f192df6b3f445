import { expect, it } from 'vitest';
import { fixture, shellHalf } from '../backends/recorded.ts';

/** The maps of two arrays, as a submit leaves them, and the queries that use them. */
const JOBMANAGER = `cd "$T"; NL='
'
encoded() { cat; }
. "$BIN/../jobmanager/arrays.sh"; . "$BIN/../jobmanager/looking.sh"
map() { mkdir -p "groups/$1"; i=0; while [ $i -lt 30 ]; do echo "a.$2.$i.1 1"; i=$((i+1)); done >|"groups/$1/map"; }
map gryphus.a.1.0.1.1.a 1; map gryphus.a.2.0.1.1.a 2
`;
const listing = fixture('sge/qstat-arrays.xml');
const qstat = `qstat() { case $* in *-xml*) cat "$T/listing" ;; esac; }`;
const ask = (...listings: string[]): string[] =>
  shellHalf(
    'sge',
    {},
    `${JOBMANAGER}${qstat}\n${listings.map((_, n) => `printf %s "$LISTING${n}" >|"$T/listing"; ask_queue`).join('\n')}`,
    Object.fromEntries(listings.map((text, n) => [`LISTING${n}`, text])),
  );

it("an array's elements that wait alike are one line of the queue, and each is reported by its own tag", () => {
  const lines = ask(listing);
  expect(lines.at(-1)).toBe('queue full');
  const held = [1, 2, 4, 5, 6, 10, 11, 12].map((n) => `+ gryphus.a.1.${n - 1}.1.1 34.${n} hqw||`);
  const waits = [1, 3, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29].map(
    (n) => `+ gryphus.a.2.${n - 1}.1.1 35.${n} qw||`,
  );
  expect(lines.slice(0, -1)).toEqual([...held, ...waits]);
});

it('an unchanged answer is reported as the same; otherwise its differences are reported', () => {
  const later = listing.replace('1,2,4-6:1,10-12:1', '2,4-6:1,10-12:1');
  const [first, again, changed] = [ask(listing), ask(listing, listing), ask(listing, listing, later, later)];
  expect(again).toEqual([...first, 'queue same']);
  expect(changed).toEqual([...again, '- gryphus.a.1.0.1.1 34.1', 'queue diff', 'queue same']);
});

it('an answer that is none is never the same', () => {
  const half = listing.slice(0, -40);
  expect(ask(half, half).map((line) => line.split(' ', 2).join(' '))).toEqual(['queue bad', 'queue bad']);
});

it('an answer that is none is quoted by its first line', () => {
  const bjobs = '\nNOTICE: maintenance on Monday\nJOB_NAME|JOBID|STAT\ngryphus.a.1.0.1.1|12|RUN|-|h|-|-\n';
  expect(shellHalf('lsf', { bjobs }, `${JOBMANAGER}ask_queue`)).toEqual([
    expect.stringMatching(/^queue bad \d+ NOTICE: maintenance on Monday$/),
  ]);
});
