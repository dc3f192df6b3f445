import type { Backend } from '../backends/contract.ts';
import type { AttemptKey } from '../job/ids.ts';
import { GryphusError } from '../errors.ts';
import type { AttemptSpec, Blob, Outcome, Outcomes } from '../site/contract.ts';
import { crashPoint } from '../util/crash-point.ts';
import {
  batches,
  checkComplete,
  refuse,
  type JobManagerContext,
  unwritten,
  words,
  answerFields,
} from './site-context.ts';
import { adLines, blobsOf, type PackedSpec, specLines, unfit } from '../site/spec-lines.ts';
import { hasTar } from './hello.ts';
import { sendBlobs } from './send-blobs.ts';

/** Records in one request: a few hundred kilobytes. */
const BATCH = 500;
/** Content that the site lacks is sent and requested again: a sweep may intervene, but not endlessly. */
const ROUNDS = 4;

/** PREPARE: sends missing content, then the records, those of a batch in one exchange. */
export async function prepare(site: JobManagerContext, specs: readonly AttemptSpec[]): Promise<Outcomes> {
  const outcomes = new Map<AttemptKey, Outcome>();
  const fit: AttemptSpec[] = [];
  for (const spec of specs) {
    const why = unfit(spec, site.backend.oneHost);
    if (why === undefined) fit.push(spec);
    else outcomes.set(spec.key, refuse('never', 'site-refused', why));
  }
  crashPoint('jm.before-prepare');
  for (const batch of batches(fit, BATCH)) {
    const packed = await withPacks(site, batch, outcomes);
    await prepareBatch(site, packed, outcomes);
    for (const spec of packed) if (outcomes.get(spec.key)?.ok) await site.packs?.drop(spec);
  }
  crashPoint('jm.after-prepare');
  const asked = specs.map((spec) => spec.key);
  checkComplete(site.name, asked, outcomes);
  return outcomes;
}

async function withPacks(
  site: JobManagerContext,
  batch: readonly AttemptSpec[],
  outcomes: Map<AttemptKey, Outcome>,
): Promise<readonly PackedSpec[]> {
  const { packs } = site;
  if (!packs || !hasTar(await site.session.hello())) return batch;
  const packed: PackedSpec[] = [];
  for (const spec of batch) {
    try {
      packed.push(await packs.packed(spec));
    } catch (thrown) {
      outcomes.set(spec.key, unsendable(thrown));
    }
  }
  return packed;
}

/** Why a file here cannot be sent. Throws what is no such reason. */
function unsendable(thrown: unknown): Outcome {
  if (!(thrown instanceof GryphusError)) throw thrown;
  if (thrown.code === 'input-missing') return refuse('never', 'input-missing', thrown.message);
  if (thrown.code === 'disk-full') return refuse('later', 'site-busy', thrown.message);
  throw thrown;
}

async function prepareBatch(site: JobManagerContext, batch: readonly PackedSpec[], outcomes: Map<AttemptKey, Outcome>) {
  let left = withoutArriving(site, batch, outcomes);
  for (let round = 1; left.length > 0; round++) {
    const blobs = new Map(left.flatMap((spec) => blobsOf(spec).map((blob) => [blob.sha256, blob] as const)));
    const names = [...[...blobs.keys()].map((sha) => `blob:${sha}`), ...left.map((spec) => spec.key)];
    const body = records(left, site.backend);
    const answer = await site.session.exchange('prepare', [words(names), body], await site.mark());
    for (const [key = ''] of answerFields(answer, 'ok')) {
      outcomes.set(key as AttemptKey, { ok: true });
      site.view.prepared(key as AttemptKey);
    }
    for (const [key = '', why] of answerFields(answer, 'failed'))
      outcomes.set(key as AttemptKey, unwritten(site.name, why));
    const missing = answerFields(answer, 'missing').flatMap(([sha = '']) => blobs.get(sha) ?? []);
    if (missing.length === 0) return;
    const unsent =
      round < ROUNDS
        ? await send(site, missing)
        : new Map(
            missing.map((blob) => [
              blob.sha256,
              refuse('later', 'disk-full', `${site.name} does not have ${blob.path}.`),
            ]),
          );
    for (const spec of left) {
      const refusal = blobsOf(spec)
        .map((blob) => unsent.get(blob.sha256))
        .find((outcome) => outcome !== undefined);
      if (refusal !== undefined) outcomes.set(spec.key, refusal);
    }
    left = withoutArriving(
      site,
      left.filter((spec) => !outcomes.has(spec.key)),
      outcomes,
    );
  }
}

async function send(site: JobManagerContext, blobs: readonly Blob[]): Promise<Map<string, Outcome>> {
  try {
    await site.packs?.make(blobs);
  } catch (thrown) {
    const outcome = unsendable(thrown);
    return new Map(blobs.map(({ sha256 }) => [sha256, outcome]));
  }
  return await sendBlobs(site, blobs);
}

/** Lines that the programs' ads have in common are sent only once. */
function records(specs: readonly PackedSpec[], backend: Backend): string {
  const job = inCommon(specs.map(({ ads }) => ads?.job ?? []));
  const machine = inCommon(specs.map(({ ads }) => ads?.machine ?? []));
  const lines = adLines({ job: [...job].sort(), machine: [...machine] });
  for (const spec of specs) {
    const { ads } = spec;
    const own = ads && {
      job: ads.job.filter((line) => !job.has(line)),
      machine: ads.machine.filter((line) => !machine.has(line)),
    };
    lines.push(`= ${spec.key}`, ...specLines(own === undefined ? spec : { ...spec, ads: own }, backend));
  }
  return `${lines.join('\n')}\n`;
}

function inCommon(lists: readonly (readonly string[])[]): ReadonlySet<string> {
  const [first = [], ...others] = lists;
  const common = new Set(first);
  for (const list of others) {
    if (common.size === 0) break;
    const here = new Set(list);
    for (const line of common) if (!here.has(line)) common.delete(line);
  }
  return common;
}

/** Leaves out attempts whose content is on its way: they wait at home, and the site is not asked about them. */
function withoutArriving(
  site: JobManagerContext,
  specs: readonly PackedSpec[],
  outcomes: Map<AttemptKey, Outcome>,
): readonly PackedSpec[] {
  const needed = new Set(specs.flatMap((spec) => blobsOf(spec).map(({ sha256 }) => sha256)));
  const known = new Map([...needed].map((sha) => [sha, site.content.look(sha)]));
  return specs.filter((spec) => {
    const [first] = blobsOf(spec).flatMap(({ sha256 }) => known.get(sha256) ?? []);
    if (first === undefined) return true;
    const coming = (path: string) => refuse('later', 'arriving', `its input ${path} is on its way to ${site.name}`);
    outcomes.set(spec.key, 'is' in first ? coming(first.blob.path) : first);
    return false;
  });
}
