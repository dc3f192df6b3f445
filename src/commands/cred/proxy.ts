import { Flags } from '@oclif/core';
import { GryphusError } from '../../errors.ts';
import { askAtTerminal } from '../ask.ts';
import { GryphusCommand, needed, prose } from '../command.ts';

export class CredProxy extends GryphusCommand {
  static override summary = 'Create, show or destroy an X.509 proxy (init, info, destroy).';
  static override description =
    prose(`init makes a proxy (RFC 3820) below your certificate, like grid-proxy-init: 12 hours, RSA 2048, mode 0600. The passphrase
of an encrypted key is asked for at the terminal. Proxies that other tools made are shown and used as they are.

info exits with status 1 if the proxy has expired.`);
  static override examples = [
    '<%= config.bin %> cred proxy init',
    '<%= config.bin %> cred proxy init --hours 24 --out ~/proxy.pem',
    '<%= config.bin %> cred proxy info --json',
    '<%= config.bin %> cred proxy destroy',
  ];
  static override args = { action: needed('init, info or destroy', ['init', 'info', 'destroy']) };
  static override flags = {
    cert: Flags.string({
      helpValue: '<file>',
      summary:
        'Your certificate, or a PKCS#12 file with its key; default $X509_USER_CERT, else ~/.globus/usercert.pem or usercred.p12.',
    }),
    key: Flags.string({ helpValue: '<file>', summary: 'Its key; default $X509_USER_KEY, else ~/.globus/userkey.pem.' }),
    out: Flags.string({
      aliases: ['file'],
      helpValue: '<file>',
      summary: 'The proxy; default $X509_USER_PROXY, else /tmp/x509up_u<uid>.',
    }),
    hours: Flags.string({
      helpValue: '<n>',
      summary: 'Lifetime in hours, 12 by default; at most until your certificate ends.',
    }),
    limited: Flags.boolean({ summary: 'Create a limited proxy; most sites do not start jobs with one.' }),
    'path-length': Flags.integer({ helpValue: '<n>', min: 0, summary: 'How many proxies may be derived from it.' }),
    bits: Flags.integer({ helpValue: '<n>', min: 2048, max: 8192, summary: 'Bits of the RSA key, 2048 by default.' }),
    verify: Flags.boolean({ summary: 'Verify it against the authorities in $X509_CERT_DIR before writing it.' }),
    json: Flags.boolean({ summary: 'A JSON object; times in Unix seconds.' }),
  };

  async run(): Promise<void> {
    const { args, flags } = await this.parse(CredProxy);
    const { proxyTools } = await import('../../index.ts');
    const { destroyProxy, initProxy, proxyFacts } = await proxyTools();
    if (args.action === 'destroy') {
      const gone = destroyProxy(flags.out);
      if (gone === undefined) throw new GryphusError('not-found', 'There is no proxy to destroy.');
      process.stdout.write(flags.json ? `${JSON.stringify({ destroyed: gone })}\n` : `${gone} is destroyed.\n`);
      return;
    }
    const { cert, key, out, limited, verify, bits } = flags;
    const facts =
      args.action === 'info'
        ? proxyFacts(out)
        : await initProxy(
            { cert, key, out, limited, verify, bits, hours: hoursOf(flags.hours), pathLength: flags['path-length'] },
            askAtTerminal,
          );
    const { text, ...data } = facts;
    process.stdout.write(flags.json ? `${JSON.stringify(data, undefined, 2)}\n` : text);
    if (facts.end * 1000 <= Date.now()) process.exitCode = 1;
  }
}

/** A number of hours, possibly fractional. */
export function hoursOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const hours = /^\d{1,6}(\.\d{1,6})?$/.test(text) ? Number(text) : 0;
  if (hours > 0) return hours;
  throw new GryphusError('usage', `'${text}' is not a number of hours.`, { suggestions: ['For example: --hours 12'] });
}
