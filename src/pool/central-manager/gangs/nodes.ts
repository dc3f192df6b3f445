import { attemptOfNode, type AttemptKey, nodeKey, parseAttemptKey } from '../../../job/ids.ts';
import { readString } from '../../../job/values.ts';
import type { InputFile } from '../../../site/contract.ts';
import { withNode } from '../../../job/parallel-node.ts';
import type { Attempt } from '../attempts.ts';
import type { GrantedNode } from '../central-manager-journal.ts';
import type { AttemptRequest } from '../../wire/client-wire.ts';

/** The nodes granted to a parallel job's attempt, in the order of their numbers. */
export function nodesOf(attempt: Attempt | undefined): readonly Attempt[] {
  return [...(attempt?.nodes?.values() ?? [])];
}

/** The name under which all jobs of a cluster start together: the key without proc and attempt. */
export function gangOf(key: AttemptKey): string {
  const parsed = parseAttemptKey(key);
  return parsed ? `${parsed.agent}.${parsed.cluster}` : key;
}

/** Attempts of one cluster, in the order in which their nodes are numbered. */
export function inOrder(parts: readonly Attempt[]): Attempt[] {
  const proc = ({ key }: Attempt) => parseAttemptKey(key)?.proc ?? 0;
  return [...parts].sort((a, b) => proc(a) - proc(b));
}

/** Records grants: gives each named attempt its nodes, all of them at once. */
export function grantNodes(attempts: Map<AttemptKey, Attempt>, granted: readonly GrantedNode[]): Attempt[] {
  const nodes: Attempt[] = [];
  const byPart = new Map<Attempt, Map<number, Attempt>>();
  for (const { key, worker, boot, claim, token } of granted) {
    const number = parseAttemptKey(key)?.node;
    const part = attempts.get(attemptOfNode(key));
    if (number === undefined || !part) continue;
    const node: Attempt = {
      key,
      client: part.client,
      request: nodeRequest(part.request, number, granted.length),
      kind: part.kind,
      order: part.order,
      submitted: part.submitted,
      phase: 'granted',
      worker,
      boot,
      claim,
      token,
      node: { part: part.key, number },
    };
    attempts.set(key, node);
    nodes.push(node);
    byPart.set(part, (byPart.get(part) ?? new Map<number, Attempt>()).set(number, node));
  }
  for (const [part, own] of byPart) {
    part.nodes = own;
    part.phase = 'granted';
  }
  return nodes;
}

/** Takes the nodes of these attempts away, which then wait again. */
export function releaseNodes(attempts: Map<AttemptKey, Attempt>, keys: readonly AttemptKey[]): void {
  for (const key of keys) {
    const part = attempts.get(key);
    for (const node of nodesOf(part)) attempts.delete(node.key);
    if (!part) continue;
    delete part.nodes;
    delete part.gone;
    delete part.decided;
    delete part.still;
    delete part.host;
    delete part.startedAt;
    delete part.isAwaited;
    part.phase = 'idle';
  }
}

/** What the worker of one node is asked to run: HTCondor's variables, and `$(Node)` as its number. */
function nodeRequest(request: AttemptRequest, number: number, all: number): AttemptRequest {
  const { gang: _, spec, ad, ...others } = request;
  const key = nodeKey(request.key, number);
  const own: Record<string, string | null> = {};
  for (const name in ad) own[name] = withNode(ad[name] ?? '', number);
  own['Node'] = String(number);
  const seen = { ...others, key, ad: own };
  const inputs = spec.inputs && ofNode(spec.inputs, number);
  if ('base' in spec) return { ...seen, spec: { ...spec, ...(inputs && { inputs }) } };
  const env: Record<string, string> = {};
  for (const name in spec.env) env[name] = withNode(spec.env[name] ?? '', number);
  env['_CONDOR_PROCNO'] = String(number);
  env['_CONDOR_NPROCS'] = String(all);
  // HTCondor's scripts leave the addresses of nodes there, by condor_chirp.
  env['_CONDOR_REMOTE_SPOOL_DIR'] = readString({ get: (name) => ad[name] ?? undefined }, 'Iwd') ?? '';
  const args = spec.args.map((word) => withNode(word, number));
  return { ...seen, spec: { ...spec, args, env, inputs: inputs ?? [] } };
}

/** The inputs of one node. What is only for some takes precedence over what all get under the same name. */
function ofNode(inputs: readonly InputFile[], number: number): InputFile[] {
  const found = new Map<string, InputFile>();
  for (const { nodes, ...input } of inputs) {
    if (nodes === undefined || nodes.includes(number)) found.set(input.name, input);
  }
  return [...found.values()];
}
