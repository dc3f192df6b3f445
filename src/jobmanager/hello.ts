import { GryphusError } from '../errors.ts';
import { parseMark, type QueueMark } from '../job/mark.ts';
import type { SitePast } from '../site/audit.ts';
import type { SiteFacts } from '../site/contract.ts';
import type { SiteAnswer } from './answer.ts';
import { percentDecode } from '../site/escape.ts';

/** What the JobManager reports about its site at start. */
export function readFacts(hello: SiteAnswer, batch: string): SiteFacts {
  const facts = factsOf(hello);
  const disk = Number(facts.get('disk'));
  return {
    host: facts.get('host') ?? '',
    os: facts.get('os') ?? '',
    arch: facts.get('arch') ?? '',
    user: facts.get('user') ?? '',
    home: homeOf(hello),
    freeDiskKb: facts.get('disk') && Number.isFinite(disk) ? disk : undefined,
    batch,
    batchVersion: facts.get('batch') || undefined,
  };
}

/** Our directory at the site, absolute. */
export function homeOf(hello: SiteAnswer): string {
  const home = factsOf(hello).get('home');
  if (!home?.startsWith('/'))
    throw new GryphusError('protocol-error', 'The site did not report where its directory is.');
  return home;
}

/** Whether the site can unpack an archive of small inputs. */
export function hasTar(hello: SiteAnswer): boolean {
  return factsOf(hello).get('tools')?.split(' ').includes('tar=1') === true;
}

/** The latest position of the agent's queue that the site knows. */
export function markOf(hello: SiteAnswer, key: string): QueueMark | undefined {
  return parseMark(factsOf(hello).get('mark') ?? '', key);
}

/** What the site knows of the agent's past. The mark's signature is not checked: its key is lost with the queue. */
export function pastOf(hello: SiteAnswer): SitePast {
  const facts = factsOf(hello);
  const number = (text: string | undefined) => (/^\d{1,15}$/.test(text ?? '') ? Number(text) : 0);
  return { epoch: number(facts.get('epoch')), cluster: number(facts.get('mark')?.split(':')[3]) };
}

function factsOf(hello: SiteAnswer): Map<string, string> {
  return new Map(
    hello.lines
      .filter((line) => line.kind === 'fact')
      .map(({ rest }) => {
        const [name = '', ...value] = rest.split(' ');
        return [name, percentDecode(value.join(' '))];
      }),
  );
}
