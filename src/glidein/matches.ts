import { asCondition, attributesOf, ClassAd, clausesOf, Matchmaker } from '../classad/api.ts';
import type { SiteRecord } from '../config/sites.ts';
import { quoted } from '../job/values.ts';
import { adFrom, offerAd, resourceTexts } from '../pool/wire/ads.ts';
import { TRANSFERS } from '../pool/host/machine.ts';
import type { AttrTexts } from '../job/attrs.ts';

/** A pilot that is home and offers its whole size. */
export function pilotAd(texts: AttrTexts): ClassAd {
  const total = (name: string): number => Number(texts[name] ?? 0);
  const size = {
    cpus: total('TotalCpus'),
    memoryMb: total('TotalMemory'),
    diskKb: total('TotalDisk'),
    gpus: total('TotalGPUs'),
  };
  return offerAd(adFrom(texts), size);
}

/**
 * What is known about a site's pilots before one comes home. `arch`: HTCondor's name for its processors; `seen`: what
 * earlier pilots reported.
 */
export function expectedAd(
  site: Pick<SiteRecord, 'name' | 'glidein'>,
  arch: string | undefined,
  seen: AttrTexts = {},
): ClassAd {
  const { cores, memoryMb, gpus } = site.glidein;
  return adFrom({
    GryphusSite: quoted(site.name),
    IsGlidein: 'true',
    OpSys: quoted('LINUX'),
    ...(arch === undefined ? {} : { Arch: quoted(arch) }),
    Cpus: String(cores),
    TotalCpus: String(cores),
    GPUs: String(gpus),
    TotalGPUs: String(gpus),
    ...(memoryMb === undefined ? {} : { Memory: String(memoryMb), TotalMemory: String(memoryMb) }),
    // It shares no file system with any machine.
    FileSystemDomain: quoted(''),
    UidDomain: quoted(''),
    ...TRANSFERS,
    ...site.glidein.attributes,
    ...resourceTexts(site.glidein.resources),
    PartitionableSlot: 'true',
    ...seen,
  });
}

/** Whether the job and such a pilot match both ways. */
export function suits(job: ClassAd, pilot: ClassAd): boolean {
  return new Matchmaker().matches(job, pilot);
}

/** False if a clause of the job's Requirements is known not to hold for a pilot; unknown values may still fit. */
export function maySuit(job: ClassAd, pilot: ClassAd): boolean {
  const matchmaker = new Matchmaker();
  const requirements = job.get('Requirements');
  const clauses = requirements === undefined ? [] : clausesOf(requirements, job);
  return clauses.every((clause) => {
    const { target, dynamic } = attributesOf(clause, job);
    const known = !dynamic && [...target].every((name) => pilot.find(name) !== undefined);
    return !known || asCondition(matchmaker.evaluate(clause, job, pilot)) === true;
  });
}
