import { expect, it } from 'vitest';
import { LOCAL_SITE, type SiteRecord } from '../../src/config/sites.ts';
import { expectedAd, maySuit, pilotAd, suits } from '../../src/glidein/matches.ts';
import { adFrom } from '../../src/pool/wire/ads.ts';
import { machineAd } from '../../src/pool/host/machine.ts';

const far: SiteRecord = { ...LOCAL_SITE, name: 'far', glidein: { ...LOCAL_SITE.glidein, cores: 4 } };
const job = (Requirements: string, more: Record<string, string> = {}) =>
  adFrom({ Requirements, RequestCpus: '2', RequestMemory: '100', FileSystemDomain: '"home"', ...more });

it('says which jobs surely do not run on pilots that have never been seen', () => {
  const pilot = expectedAd(far, 'X86_64');
  const may = (text: string) => maySuit(job(text), pilot);
  expect(may('TARGET.GryphusSite == "far" && TARGET.OpSys == "LINUX"')).toBe(true);
  expect(may('GryphusSite == "near"')).toBe(false);
  expect(may('TARGET.Arch == "aarch64"')).toBe(false);
  expect(may('TARGET.Cpus >= RequestCpus * 4')).toBe(false);
  expect(may('TARGET.FileSystemDomain == MY.FileSystemDomain')).toBe(false);
  expect(may('TARGET.FileSystemDomain == MY.FileSystemDomain || TARGET.HasFileTransfer')).toBe(true);
  // Nothing follows from what is not known yet, in whatever form it is asked.
  for (const open of [
    'TARGET.HasContainer =?= true',
    'isUndefined(TARGET.HasFoo) == false',
    'TARGET.Memory > 1e6',
    'TARGET.HasFoo',
  ])
    expect([open, may(open)]).toEqual([open, true]);
  expect(may('TARGET.HasFoo && TARGET.GryphusSite == "near"')).toBe(false);
  expect(maySuit(job('TARGET.Arch == "aarch64"'), expectedAd(far, undefined))).toBe(true);
});

it('and of those that are home by their ad, whatever runs there', () => {
  const size = { cpus: 4, memoryMb: 1000, diskKb: 1000, gpus: 0 };
  const ad = machineAd('far-1', size, { GryphusSite: '"far"', START: 'TARGET.Owner == "me"' });
  const pilot = pilotAd({ ...ad, Cpus: '0', Memory: '0', Disk: '0', GPUs: '0' });
  const mine = { Owner: '"me"', RequestDisk: '10' };
  expect(suits(job('TARGET.Cpus >= RequestCpus', mine), pilot)).toBe(true);
  expect(suits(job('TARGET.HasContainer =?= true', mine), pilot)).toBe(false);
  expect(suits(job('true', { ...mine, Owner: '"you"' }), pilot)).toBe(false);
  expect(suits(job('true', { ...mine, RequestCpus: '8' }), pilot)).toBe(false);
});
