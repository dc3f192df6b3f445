/** One entry of a `<hash>.signing_policy` file (Globus' EACL form): the subjects that a CA may sign. */
export interface SigningPolicy {
  /** The CA's name, `/C=…/CN=…`. */
  readonly authority: string;
  readonly subjects: readonly string[];
}

/**
 * Parses a signing_policy file; entries without the right `globus CA:sign` allow nothing. Throws a RangeError whose
 * message names the line (from 1) and the fault.
 */
export function readSigningPolicy(text: string): readonly SigningPolicy[] {
  const entries: { authority: string; rights: boolean; subjects: string[] }[] = [];
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    const words = wordsOf(line);
    const [key, kind, value, ...more] = words;
    if (key === undefined) continue;
    const at = `line ${index + 1}`;
    if (value === undefined || more.length > 0)
      throw new RangeError(`${at}: '${line.trim()}' does not have three fields`);
    const entry = entries.at(-1);
    if (key === 'access_id_CA') entries.push({ authority: value, rights: false, subjects: [] });
    else if (entry === undefined) throw new RangeError(`${at}: '${key}' comes before access_id_CA`);
    else if (key === 'pos_rights') entry.rights ||= kind === 'globus' && value === 'CA:sign';
    else if (key === 'cond_subjects') entry.subjects.push(...(wordsOf(value).length > 0 ? wordsOf(value) : [value]));
    else if (key !== 'neg_rights') throw new RangeError(`${at}: '${key}' is not a keyword of signing policies`);
  }
  return entries.map(({ authority, rights, subjects }) => ({ authority, subjects: rights ? subjects : [] }));
}

/** The words of a line; quotes ('…' or "…") may contain blanks; `#` starts a comment. */
function wordsOf(line: string): readonly string[] {
  const words: string[] = [];
  for (const found of line.matchAll(/'([^']*)'|"([^"]*)"|#.*$|([^\s'"#]\S*)/g)) {
    const word = found[1] ?? found[2] ?? found[3];
    if (word !== undefined) words.push(word);
  }
  return words;
}

/** Whether the policy lets that CA sign that subject. `*` matches any text, `?` one character; case is ignored. */
export function maySign(policies: readonly SigningPolicy[], authority: string, subject: string): boolean {
  const same = (a: string, b: string) => plain(a) === plain(b);
  return policies.some(
    (one) => same(one.authority, authority) && one.subjects.some((pattern) => matches(plain(pattern), plain(subject))),
  );
}

/** Normalizes a name for comparison as Globus does: one spelling of the e-mail attribute, case ignored. */
function plain(name: string): string {
  return name.replace(/\/(emailaddress|email|e)=/gi, '/emailAddress=').toLowerCase();
}

/** Glob matching that only backtracks to the latest star. */
function matches(pattern: string, subject: string): boolean {
  let [p, s, star, mark] = [0, 0, -1, 0];
  while (s < subject.length) {
    if (pattern[p] === '*') [star, mark] = [p++, s];
    else if (p < pattern.length && (pattern[p] === '?' || pattern[p] === subject[s])) [p, s] = [p + 1, s + 1];
    else if (star >= 0) [p, s] = [star + 1, ++mark];
    else return false;
  }
  while (pattern[p] === '*') p++;
  return p === pattern.length;
}
