import { LIFE } from '../job/life.ts';
import type { Row } from './row.ts';

/** What the box above the table says. */
export type Filter =
  | { readonly is: 'words'; readonly fits: (row: Row, haystack: string) => boolean }
  | { readonly is: 'constraint'; readonly text: string };

/** What no word contains, but most constraints do. */
const EXPRESSION = /==|!=|=\?=|=!=|[<>&|()]|\b(?:is|isnt)\b.*\b(?:undefined|error)\b/i;

const FIELDS: Readonly<Record<string, (row: Row) => string>> = {
  state: ({ state }) => `${LIFE[state].shows} ${state}`,
  site: ({ site }) => site,
  owner: ({ owner }) => owner,
  batch: ({ batch }) => batch,
  host: ({ host }) => host,
  node: ({ node }) => node,
  job: ({ id }) => `${id.cluster}.${id.proc}`,
  cluster: ({ id }) => `${id.cluster}`,
};

/**
 * Words that must all occur in a row, in any case and anywhere; `site:c1` (or `state:`, `owner:`, `batch:`, `host:`, `node:`)
 * only there, `cluster:12` and `job:12.3` exactly. A text with operators or parentheses is a ClassAd constraint.
 */
export function filterOf(box: string): Filter {
  const text = box.trim();
  if (EXPRESSION.test(text)) return { is: 'constraint', text };
  const tests = text
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '')
    .map((word): ((row: Row, haystack: string) => boolean) => {
      const [, name = '', wanted = ''] = /^(\w+):(.+)$/.exec(word) ?? [];
      const field = Object.hasOwn(FIELDS, name) ? FIELDS[name] : undefined;
      if (!field) return (_, haystack) => haystack.includes(word);
      if (name === 'cluster' || name === 'job') return (row) => field(row) === wanted;
      return (row) => field(row).toLowerCase().includes(wanted);
    });
  return { is: 'words', fits: (row, haystack) => tests.every((test) => test(row, haystack)) };
}
