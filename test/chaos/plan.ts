/** What is submitted in a chaos run. All of it is determined by the seed. */

export interface Submit {
  /** For display: `dag 12` or `slurm 40`. */
  readonly what: string;
  readonly command: 'submit' | 'dag';
  readonly file: string;
  readonly text: string;
  /** Further files, by name. */
  readonly beside?: Readonly<Record<string, string>>;
  readonly jobs: number;
}

/** Where jobs go: lines of a submit file. A pool job may run on this machine's worker or on a pilot's. */
export const PLACES: Readonly<Record<string, string>> = {
  pool: '',
  'pool, bare': '',
  'pool, files': 'should_transfer_files = YES\nwhen_to_transfer_output = ON_EXIT\n',
  local: 'universe = grid\ngrid_resource = batch fork local\n',
  ssh: 'universe = grid\ngrid_resource = batch fork there\n',
  slurm: 'universe = grid\ngrid_resource = batch slurm cluster\n',
};

/** Many quick jobs without output: most of a long run. */
const BARE = 'pool, bare';
const MOST_BARE = 1000;

const SIGNALS = [6, 10, 11, 15];

/** `END` of job.sh: usually 0, otherwise any exit status, occasionally a signal. */
export function randomEnd(random: () => number): string {
  const dice = random();
  if (dice < 0.7) return '0';
  if (dice < 0.95) return String(Math.floor(random() * 256));
  return `s${SIGNALS[Math.floor(random() * SIGNALS.length)] ?? 15}`;
}

/** Several submits with `jobs` jobs in total, 5 to 120 each; those of bare jobs are larger. */
export function plan(random: () => number, jobs: number, ledger: string): Submit[] {
  const submits: Submit[] = [];
  const places = Object.keys(PLACES);
  for (let left = jobs; left > 0; ) {
    const n = submits.length;
    const place = places[Math.floor(random() * places.length)] ?? 'pool';
    const dag = random() < 0.15;
    const most = dag ? 10 : place === BARE ? MOST_BARE : 115;
    const count = Math.min(left, 5 + Math.floor(random() * (most + 1)));
    left -= count;
    submits.push(dag ? dagOf(random, n, count, place, ledger) : cluster(random, n, count, place, ledger));
  }
  return submits;
}

function lines(place: string, log: string): string {
  const output = place === BARE ? '' : 'output = out.$(Cluster).$(Process)\n';
  return `${PLACES[place] ?? ''}executable = job.sh\n${output}log = ${log}\nnotification = never\n`;
}

function cluster(random: () => number, n: number, count: number, place: string, ledger: string): Submit {
  const quick = place === BARE ? 0.95 : 0;
  const items = Array.from({ length: count }, () => `${random() < quick ? '0' : seconds(random)} ${randomEnd(random)}`);
  const late = random() < 0.2 ? 'max_materialize = 20\n' : '';
  return {
    what: `${place} ${count}`,
    command: 'submit',
    file: `c${n}.sub`,
    text: `${lines(place, `c${n}.log`)}${late}arguments = $(Cluster).$(Process) $(seconds) $(end) ${ledger}\nqueue seconds, end from (\n${items.join('\n')}\n)\n`,
    jobs: count,
  };
}

/** A diamond of some width: one node, then many, then one. All of its nodes succeed. */
function dagOf(random: () => number, n: number, count: number, place: string, ledger: string): Submit {
  const middle = Array.from({ length: Math.max(1, count - 2) }, (_, i) => `M${i}`);
  const nodes = ['A', ...middle, 'Z'];
  return {
    what: `dag of ${nodes.length}, ${place}`,
    command: 'dag',
    file: `d${n}.dag`,
    text: `${nodes.map((name) => `JOB ${name} d${n}.sub\nRETRY ${name} 5\n`).join('')}PARENT A CHILD ${middle.join(' ')}\nPARENT ${middle.join(' ')} CHILD Z\n`,
    beside: {
      [`d${n}.sub`]: `${lines(place, `d${n}.log`)}arguments = $(Cluster).$(Process) ${seconds(random)} 0 ${ledger}\nqueue\n`,
    },
    jobs: nodes.length,
  };
}

/** Most are short; some live long enough to be killed more than once. */
function seconds(random: () => number): string {
  const dice = random();
  if (dice < 0.7) return '0';
  return dice < 0.95 ? random().toFixed(2) : (2 + random() * 4).toFixed(2);
}
