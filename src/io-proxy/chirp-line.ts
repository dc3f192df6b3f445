/** The arguments of each request of Chirp: `s` a word, `d` a decimal number. */
const SIGNATURES = {
  cookie: 's',
  open: 'ssd',
  close: 'd',
  lseek: 'ddd',
  read: 'dd',
  write: 'dd',
  pread: 'ddd',
  pwrite: 'ddd',
  sread: 'ddddd',
  swrite: 'ddddd',
  fsync: 'd',
  fstat: 'd',
  fstatfs: 'd',
  fchown: 'ddd',
  fchmod: 'dd',
  ftruncate: 'dd',
  unlink: 's',
  rename: 'ss',
  mkdir: 'sd',
  rmdir: 's',
  rmall: 's',
  getfile: 's',
  putfile: 'sdd',
  getdir: 's',
  getlongdir: 's',
  link: 'ss',
  symlink: 'ss',
  readlink: 'sd',
  stat: 's',
  lstat: 's',
  statfs: 's',
  access: 'sd',
  chmod: 'sd',
  chown: 'sdd',
  lchown: 'sdd',
  truncate: 'sd',
  utime: 'sdd',
  lookup: 's',
  constrain: 's',
  get_job_attr: 's',
  set_job_attr: 'ss',
  get_job_attr_delayed: 's',
  set_job_attr_delayed: 'ss',
  ulog: 's',
  whoami: 'd',
  whoareyou: 'sd',
  version: '',
  /** Ours: from here on the connection, under this name, has requests of gryphus-remote-io. */
  remote_io: 's',
} as const satisfies Record<string, string>;
export type ChirpVerb = keyof typeof SIGNATURES;

/** One line of Chirp: the words and the numbers among its arguments, each in their order. */
export interface ChirpLine {
  readonly verb: ChirpVerb;
  readonly words: readonly string[];
  readonly numbers: readonly number[];
}

/**
 * Reads a request. In a word, a backslash takes the next character as it is: a blank, a line end, a backslash. More
 * arguments than wanted are ignored, as condor_starter does. `undefined` if it is not a request.
 */
export function readChirpLine(line: Buffer): ChirpLine | undefined {
  const [verb, ...given] = wordsIn(line);
  if (verb === undefined || !Object.hasOwn(SIGNATURES, verb)) return undefined;
  const words: string[] = [];
  const numbers: number[] = [];
  for (const [i, kind] of SIGNATURES[verb as ChirpVerb].split('').entries()) {
    const word = given[i];
    // A replacement character: the word is not UTF-8, so it names nothing that could be sent home.
    if (word === undefined || word.includes('\uFFFD')) return undefined;
    if (kind === 's') words.push(word);
    else if (/^[+-]?\d{1,15}$/.test(word)) numbers.push(Number(word));
    else return undefined;
  }
  return { verb: verb as ChirpVerb, words, numbers };
}

const [BACKSLASH, BLANKS] = [0x5c, new Set([0x20, 0x09, 0x0a, 0x0b, 0x0c, 0x0d])];

function wordsIn(line: Buffer): string[] {
  const words: string[] = [];
  let word: number[] | undefined;
  for (let i = 0; i < line.length; i++) {
    const byte = line[i] ?? 0;
    if (BLANKS.has(byte)) {
      if (word) words.push(Buffer.from(word).toString());
      word = undefined;
      continue;
    }
    word ??= [];
    if (byte !== BACKSLASH) word.push(byte);
    else if (i + 1 < line.length) word.push(line[++i] ?? 0);
  }
  if (word) words.push(Buffer.from(word).toString());
  return words;
}

/**
 * The end of the line that begins these bytes: the offset of its newline, or -1. A newline behind a backslash belongs
 * to a word.
 */
export function lineEnd(bytes: Buffer): number {
  for (let i = 0; i < bytes.length; i++) {
    if (bytes[i] === BACKSLASH) i += 1;
    else if (bytes[i] === 0x0a) return i;
  }
  return -1;
}
