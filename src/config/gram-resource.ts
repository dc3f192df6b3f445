import { GryphusError } from '../errors.ts';

/** A GRAM2 service: HTCondor's `grid_resource = gt2 HOST[:PORT]/jobmanager-NAME[:SUBJECT]`. */
export interface GramTarget {
  readonly kind: 'gram';
  readonly host: string;
  readonly port: number;
  /** `jobmanager-fork`, say; `@account` behind it chooses the account. */
  readonly service: string;
  /** Of the gatekeeper's certificate, where that does not name its host. */
  readonly subject?: string;
}

/** The port that IANA gave the gatekeeper (gsigatekeeper). */
export const GATEKEEPER_PORT = 2119;
const CONTACT = /^(\[[0-9A-Fa-f:.]+\]|[^@/:\s[\]-][^@/:\s[\]]*)(?::(\d{1,5}))?(?:\/([^:\s/]*))?(?::(\/.*))?$/;
const SITE_NAME = /^gt2:([^:]+):(\d{1,5}):([^:]+)(?::([^:]+))?$/;

/** Reads a gatekeeper's contact; a GryphusError 'bad-input' names what is wrong and the form. */
export function parseGramContact(text: string): GramTarget {
  const [, host, port, service, subject] = CONTACT.exec(text.trim()) ?? [];
  const number = port === undefined ? GATEKEEPER_PORT : Number(port);
  if (host === undefined || number < 1 || number > 65_535) {
    throw new GryphusError('bad-input', `'${text}' is not the contact of a GRAM service.`, {
      suggestions: ['Write HOST/jobmanager-NAME, HOST:PORT/jobmanager-NAME, or that with :/SUBJECT behind it.'],
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

/** The name of the site that a grid_resource names without a site's file: `gt2:HOST:PORT:SERVICE`, each part percent-encoded. */
export function gramSiteName({ host, port, service, subject }: GramTarget): string {
  return ['gt2', host, String(port), service, ...(subject === undefined ? [] : [subject])]
    .map(encodeURIComponent)
    .join(':');
}

/** The service that such a name stands for; `undefined` where it is no such name. */
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
