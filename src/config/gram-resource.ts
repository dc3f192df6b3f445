import { GryphusError } from '../errors.ts';

/** A GRAM2 service: HTCondor's `grid_resource = gt2 HOST[:PORT]/jobmanager-NAME[:SUBJECT]`. */
export interface GramTarget {
  readonly kind: 'gram';
  readonly host: string;
  readonly port: number;
  /** For example `jobmanager-fork`; `@account` after it chooses the account. */
  readonly service: string;
  /** The subject of the gatekeeper's certificate, if it does not name its host. */
  readonly subject?: string;
}

/** The gatekeeper's port as assigned by IANA (gsigatekeeper). */
export const GATEKEEPER_PORT = 2119;
const CONTACT = /^(\[[0-9A-Fa-f:.]+\]|[^@/:\s[\]-][^@/:\s[\]]*)(?::(\d{1,5}))?(?:\/([^:\s/]*))?(?::(\/.*))?$/;
const SITE_NAME = /^gt2:([^:]+):(\d{1,5}):([^:]+)(?::([^:]+))?$/;

/** Parses a gatekeeper's contact; a GryphusError 'bad-input' says what is wrong and what form is expected. */
export function parseGramContact(text: string): GramTarget {
  const [, host, port, service, subject] = CONTACT.exec(text.trim()) ?? [];
  const number = port === undefined ? GATEKEEPER_PORT : Number(port);
  if (host === undefined || number < 1 || number > 65_535) {
    throw new GryphusError('bad-input', `'${text}' is not the contact of a GRAM service.`, {
      suggestions: ['Write HOST/jobmanager-NAME, HOST:PORT/jobmanager-NAME, optionally followed by :/SUBJECT.'],
    });
  }
  return {
    kind: 'gram',
    host: host.replace(/^\[(.*)\]$/, '$1'),
    port: number,
    service: service || 'jobmanager',
    ...(subject === undefined ? {} : { subject }),
  };
}

export function formatGramContact({ host, port, service, subject }: GramTarget): string {
  const name = host.includes(':') ? `[${host}]` : host;
  return `${name}:${port}/${service}${subject === undefined ? '' : `:${subject}`}`;
}

/** The site name for a grid_resource without a site file: `gt2:HOST:PORT:SERVICE`, each part percent-encoded. */
export function gramSiteName({ host, port, service, subject }: GramTarget): string {
  return ['gt2', host, String(port), service, ...(subject === undefined ? [] : [subject])]
    .map(encodeURIComponent)
    .join(':');
}

/** The service that such a name stands for; `undefined` for any other name. */
export function gramSiteTarget(name: string): GramTarget | undefined {
  const [, host, port, service, subject] = SITE_NAME.exec(name) ?? [];
  if (host === undefined || service === undefined) return undefined;
  return {
    kind: 'gram',
    host: decodeURIComponent(host),
    port: Number(port),
    service: decodeURIComponent(service),
    ...(subject === undefined ? {} : { subject: decodeURIComponent(subject) }),
  };
}
