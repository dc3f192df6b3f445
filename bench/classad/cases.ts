import { ClassAd, literal, parseAd } from '../../src/classad/api.ts';

export const JOB = parseAd(`[
  MyType = "Job"; Owner = "alice"; Cmd = "/bin/sim"; RequestMemory = 2048; RequestCpus = 2; ImageSize = 100; DiskUsage = 75;
  RequestDisk = DiskUsage; JobUniverse = 5; JobStatus = 2; QDate = 1700000000; EnteredCurrentStatus = 1700000100;
  JobPrio = 3; NumJobStarts = 1; NumHolds = 0; ExitCode = 0; ExitBySignal = false; FileSystemDomain = "htc.example";
  WantGPU = false; AcctGroup = "physics.atlas"; Rank = TARGET.Memory;
  Requirements = (TARGET.Arch == "X86_64") && (TARGET.OpSys == "LINUX") && (TARGET.Disk >= RequestDisk)
    && (TARGET.Memory >= RequestMemory) && (TARGET.Cpus >= RequestCpus)
    && ((TARGET.FileSystemDomain == MY.FileSystemDomain) || (TARGET.HasFileTransfer)) ]`);

export const SLOT = parseAd(`[
  MyType = "Machine"; Name = "slot1@node1"; Arch = "X86_64"; OpSys = "LINUX"; Memory = 16384; Cpus = 8; Disk = 1000000;
  KeyboardIdle = 4000; LoadAvg = 0.2; CondorLoadAvg = 0.1; State = "Unclaimed"; Activity = "Idle"; HasFileTransfer = true;
  FileSystemDomain = "htc.example"; KFlops = 1500000; Mips = 20000; CondorVersion = "$CondorVersion: 25.14.0 2026-11-20 $";
  OfflineUntil = undefined; Groups = { "physics.atlas", "physics.cms" };
  NonCondorLoadAvg = LoadAvg - CondorLoadAvg; CpuIdle = NonCondorLoadAvg <= 0.3;
  START = KeyboardIdle > 15 * 60 && CpuIdle && (TARGET.ImageSize ?: 0) < Memory * 1024;
  Requirements = START && (TARGET.RequestMemory <= Memory) && (TARGET.RequestCpus <= Cpus); Rank = 0 ]`);

/** Expressions as found in job ads and configurations: [name, ad that contains it, text]. */
export const EXPRESSIONS: readonly (readonly [name: string, side: 'job' | 'slot', text: string])[] = [
  ["a job's requirements", 'job', 'Requirements'],
  ['a START policy', 'slot', 'START'],
  ["a slot's requirements", 'slot', 'Requirements'],
  ['a rank', 'job', 'TARGET.KFlops / 1000.0 + TARGET.Memory * 2 - (TARGET.LoadAvg * 100)'],
  ['a choice', 'job', 'RequestMemory =!= undefined ? RequestMemory : (ImageSize + 1023) / 1024'],
  [
    'periodic_remove',
    'job',
    'JobStatus == 2 && (time() - EnteredCurrentStatus) > 24 * 60 * 60 * 2 && NumJobStarts < 3',
  ],
  ['periodic_release', 'job', 'JobStatus == 5 && NumHolds < 3 && (time() - EnteredCurrentStatus) > 15 * 60'],
  ['a constraint', 'job', 'Owner == "alice" && JobStatus == 2 && QDate > 1600000000'],
  ['on_exit_remove', 'job', '(ExitBySignal == false) && (ExitCode == 0) || NumJobStarts >= 1 + 2 * 2'],
  ['a group', 'job', 'stringListMember("physics", "astro, physics, cs") && member(AcctGroup, TARGET.Groups)'],
];

/** Slots of a pool: a few sizes and places or, with `distinct`, each different. */
export function pool(count: number, distinct: boolean): ClassAd[] {
  return Array.from({ length: count }, (_each, at) => {
    const ad = new ClassAd().chainTo(SLOT);
    return ad
      .set('Name', `slot${at}@node${at >> 3}`)
      .set('Memory', distinct ? 1024 + at : 2048 * (1 + (at % 16)))
      .set('Cpus', 1 + (at % 8))
      .set('FileSystemDomain', at % 3 === 0 ? 'htc.example' : 'other.example');
  });
}

/** Jobs of `kinds` clusters, in turn. */
export function queue(count: number, kinds: number): ClassAd[] {
  const clusters = Array.from({ length: kinds }, (_each, at) => {
    return new ClassAd()
      .chainTo(JOB)
      .set('ClusterId', at)
      .set('RequestMemory', 512 + 64 * at)
      .set('RequestCpus', 1 + (at % 4));
  });
  return Array.from({ length: count }, (_each, at) => {
    return new ClassAd().chainTo(clusters[at % kinds]).setExpr('ProcId', literal(at));
  });
}
