import { asCondition, attributesOf, ClassAd, clausesOf, Matchmaker } from '../classad/api.ts';
import type { SiteRecord } from '../config/sites.ts';
import { quoted } from '../job/values.ts';
import { adFrom, offerAd } from '../pool/ads.ts';
import { TRANSFERS } from '../pool/machine.ts';
import type { AttrTexts } from '../job/attrs.ts';

/** A pilot that is home, whose whole size is offered. */
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
 * What is known of a site's pilots before one came home; `arch`: HTCondor's word for its processors; `seen`: what earlier ones
 * said.
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
    // It shares files with nobody.
    FileSystemDomain: quoted(''),
    UidDomain: quoted(''),
    ...TRANSFERS,
    PartitionableSlot: 'true',
    ...seen,
  });
}

/** The job and such a pilot will have each other. */
export function suits(job: ClassAd, pilot: ClassAd): boolean {
  return new Matchmaker().matches(job, pilot);
}

/** False where a clause of the job's Requirements is not true of a pilot by what is known of it; what is not known may be. */
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
