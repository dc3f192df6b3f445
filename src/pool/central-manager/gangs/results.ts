import { join } from 'node:path';
import { namesNode, withNode } from '../../../job/parallel-node.ts';
import type { FetchedFile, FetchOutcome, FetchRequest, NodeReport } from '../../../site/contract.ts';
import type { Attempt } from '../attempts.ts';
import { gangOf } from './nodes.ts';

export interface NodeOutcome {
  readonly node: Attempt;
  readonly outcome: FetchOutcome;
}

/** What is asked of one node for its job's results; `undefined` if its program never started, or its worker is lost. */
export function nodeRequestOf(request: FetchRequest, { key, node, ending }: Attempt): FetchRequest | undefined {
  const how = ending?.how;
  if (!node || !ending || ending.startedAt === undefined) return undefined;
  if (how?.kind === 'by-site' && how.cause === 'node-fail') return undefined;
  const { outputs } = request;
  const own = outputs === 'new' ? outputs : outputs.map((name) => withNode(name, node.number));
  return { ...request, key, outputs: own, into: join(request.into, `node.${node.number}`) };
}

/**
 * The results of all nodes as those of one attempt, node 0's last, so that they take precedence. A named output is
 * missing if no node made it, or, if its name contains `$(Node)`, if that node ended by itself without it.
 */
export function gathered(outcomes: readonly NodeOutcome[], request: FetchRequest): FetchOutcome {
  const later = outcomes.find(({ outcome }) => !outcome.ok && outcome.missing.length === 0 && !outcome.odd?.length);
  if (later) return later.outcome;
  const files: FetchedFile[] = [];
  const missing = new Set<string>();
  for (const { node, outcome } of [...outcomes].reverse()) {
    const number = node.node?.number ?? 0;
    for (const file of outcome.files ?? []) files.push({ ...file, node: number });
    if (outcome.ok || node.ending?.how.kind === 'by-site') continue;
    for (const name of outcome.missing) missing.add(name);
  }
  const made = new Set(files.map(({ name }) => name));
  const own = new Set(request.outputs === 'new' ? [] : request.outputs.filter((name) => !namesNode(name)));
  const lacking = [...missing].filter((name) => !(own.has(name) && made.has(name)));
  const odd = outcomes.flatMap(({ outcome }) => (outcome.ok ? [] : (outcome.odd ?? [])));
  if (lacking.length + odd.length === 0) return { ok: true, files };
  const message = `The job did not create ${[...lacking, ...odd.map(({ name }) => name)].map((name) => `'${name}'`).join(', ')}.`;
  return { ok: false, refusal: { kind: 'never', code: 'output-missing', message }, missing: lacking, odd, files };
}

/** What is told of the nodes of a parallel job, with the first of its attempts. */
export function nodeReports(nodes: readonly Attempt[]): NodeReport[] {
  return nodes.map(({ node, host, startedAt, ending, key }) => {
    const how = ending?.how;
    return {
      number: node?.number ?? 0,
      slot: host ?? gangOf(key),
      ...(startedAt === undefined ? {} : { startedAt }),
      ...(ending?.endedAt === undefined ? {} : { endedAt: ending.endedAt }),
      ...(how?.kind === 'exited' ? { exitCode: how.code } : {}),
      ...(how?.kind === 'signaled' ? { signal: how.signal } : {}),
      ...(ending?.usage ? { usage: ending.usage } : {}),
    };
  });
}
