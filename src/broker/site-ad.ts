import { ClassAd, parseExpr } from '../classad/api.ts';
import { backendOf } from '../backends/registry.ts';
import { quoted } from '../job/values.ts';
import { expectedWait, type SiteLoad, PROBATION } from './load.ts';
import { fewerFrom, recentFailures } from './measures.ts';
import type { CandidateSite, KnownSite } from './sites.ts';

/** A site's Requirements: it answers, its report is recent enough, and it has enough cores at all. */
export const SITE_REQUIREMENTS = [
  'Connection == "up"',
  'InUse',
  'ValidUntil > time()',
  '(TotalCpus =?= undefined || TARGET.RequestCpus =?= undefined || TARGET.RequestCpus * (TARGET.HostNumber ?: 1) <= TotalCpus)',
  '((TARGET.HostNumber ?: 1) == 1 || !OneHost)',
].join(' && ');

/** The site's ClassAd: names and expression texts. `now`: Unix seconds. */
export function siteAd(site: KnownSite, now: number): Record<string, string> {
  const { record, capacityPoll, connection, jobs, backoff, measures } = site;
  const load = loadOf(site, now);
  const ad: Record<string, string | undefined> = {
    MyType: quoted('Site'),
    Name: quoted(record.name),
    Machine: text(capacityPoll?.host),
    Batch: quoted(record.batch),
    OneHost: String(backendOf(record.batch)?.oneHost === true),
    BatchVersion: text(capacityPoll?.batchVersion),
    Arch: text(capacityPoll && condorArch(capacityPoll.arch)),
    OpSys: text(capacityPoll && opSysOf(capacityPoll.os)),
    TotalCpus: number(load.totalCpus),
    FreeCpus: number(load.freeCpus),
    Disk: number(capacityPoll?.freeDiskKb),
    Queue: text(record.queue),
    Project: text(record.project),
    Cost: record.cost.toFixed(Number.isInteger(record.cost) ? 1 : 4),
    Credential: text(record.credential),
    MaxJobs: String(load.maxJobs),
    InUse: String(isInUse(site, now)),
    OutOfUse: text(backoff.outOfUse?.message),
    JobsHere: String(jobs.here),
    JobsQueued: String(jobs.queued),
    JobsRunning: String(jobs.running),
    MeanWait: real(measures.wait),
    MeanRunTime: real(measures.run),
    ExpectedWait: String(expectedWait(load, 1)),
    RecentFailures: String(load.failures),
    Connection: quoted(connection?.connection ?? 'unused'),
    ConnectionWords: text(connection?.message === '' ? undefined : connection?.message),
    LastHeardFrom: number(capacityPoll && Math.floor(capacityPoll.at / 1000)),
    ValidUntil: number(capacityPoll && Math.floor(capacityPoll.validUntil / 1000)),
    Requirements: SITE_REQUIREMENTS,
  };
  return Object.fromEntries(Object.entries(ad).filter((one): one is [string, string] => one[1] !== undefined));
}

/** A site that is out of use is tried from time to time with one job. `now`: Unix seconds. */
export function isInUse({ backoff: { outOfUse } }: Pick<KnownSite, 'backoff'>, now: number): boolean {
  return outOfUse === undefined || (!outOfUse.probing && outOfUse.probeAt <= now * 1000);
}

export function candidateOf(site: KnownSite, now: number): CandidateSite {
  const ad = new ClassAd();
  for (const [name, value] of Object.entries(siteAd(site, now))) ad.setExpr(name, parseExpr(value));
  return { name: site.record.name, ad, load: loadOf(site, now), cost: site.record.cost };
}

function loadOf({ record, capacityPoll, jobs, backoff, measures }: KnownSite, now: number): SiteLoad {
  // Jobs that started since the capacity poll have taken cores that it reported as free.
  const since = capacityPoll === undefined ? 0 : Math.max(0, jobs.running - capacityPoll.running);
  return {
    totalCpus: capacityPoll?.cpus,
    freeCpus: capacityPoll?.freeCpus === undefined ? undefined : Math.max(0, capacityPoll.freeCpus - since),
    ...jobs,
    maxJobs: Math.min(record.limits.queued, backoff.learned?.cap ?? Number.POSITIVE_INFINITY),
    meanWait: measures.wait,
    meanRun: measures.run,
    failures: recentFailures(measures, now),
    probationUntil: fewerFrom(measures, PROBATION, now),
    outOfUse: backoff.outOfUse !== undefined,
  };
}

/** HTCondor's names for what `uname -m` and `uname -s` print. */
export function condorArch(machine: string): string {
  if (machine === 'x86_64' || machine === 'amd64') return 'X86_64';
  return /^i[3-6]86$/.test(machine) ? 'INTEL' : machine;
}

function opSysOf(system: string): string {
  const name = system.split(' ')[0] ?? '';
  return name === 'Darwin' ? 'macOS' : name.toUpperCase();
}

function text(value: string | undefined): string | undefined {
  return value === undefined || value === '' ? undefined : quoted(value);
}

function number(value: number | undefined): string | undefined {
  return value === undefined ? undefined : String(value);
}

function real(value: number | undefined): string | undefined {
  return value === undefined ? undefined : value.toFixed(1);
}
