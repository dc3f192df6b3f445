import { Flags } from '@oclif/core';
import { askAtTerminal } from '../ask.ts';
import { GryphusCommand, needed, prose } from '../command.ts';
import { hoursOf } from './proxy.ts';

export class CredMyproxy extends GryphusCommand {
  static override summary = 'Keep a long proxy in a MyProxy server (init, get, info, destroy).';
  static override description =
    prose(`init stores a proxy of one week, signed with your certificate; the server makes its key. get fetches a short proxy (12
hours) from it. info and destroy authenticate with your current proxy. Passphrases are typed at the terminal or read from a
file with mode 0600; they are never arguments.

To have proxies renewed automatically, set [myproxy] in credentials/NAME.toml (\`gryphus config --docs\`), or MyProxyHost in
the submit file.`);
  static override examples = [
    '<%= config.bin %> cred myproxy init --server myproxy.example.org --user jane',
    '<%= config.bin %> cred myproxy get --server myproxy.example.org --user jane --hours 12',
    '<%= config.bin %> cred myproxy info --server myproxy.example.org --user jane --json',
    '<%= config.bin %> cred myproxy destroy --server myproxy.example.org --user jane',
  ];
  static override args = { action: needed('init, get, info or destroy', ['init', 'get', 'info', 'destroy']) };
  static override flags = {
    server: Flags.string({ helpValue: '<host[:port]>', summary: 'Default $MYPROXY_SERVER, port 7512.' }),
    'server-dn': Flags.string({
      helpValue: '<subject>',
      summary: "Subject of the server's certificate, if that does not name the host.",
    }),
    user: Flags.string({
      helpValue: '<name>',
      summary: 'Name that the proxy is stored under; default: your log-in name.',
    }),
    'credential-name': Flags.string({ helpValue: '<name>', summary: 'Which of several credentials of that name.' }),
    'passphrase-file': Flags.string({
      helpValue: '<file>',
      summary: 'File (mode 0600) with the passphrase on its first line.',
    }),
    'no-passphrase': Flags.boolean({
      summary: 'init: store without a passphrase, for renewal by certificate.',
      exclusive: ['passphrase-file'],
    }),
    cert: Flags.string({ helpValue: '<file>', summary: 'init: your certificate; default as `cred proxy`.' }),
    key: Flags.string({ helpValue: '<file>', summary: 'init: its key.' }),
    out: Flags.string({ helpValue: '<file>', summary: 'The proxy, written by get, used by info and destroy.' }),
    hours: Flags.string({
      helpValue: '<n>',
      summary: 'Lifetime in hours; init: of what is stored (168), get: of the proxy (12).',
    }),
    longest: Flags.string({
      helpValue: '<hours>',
      summary: 'init: longest lifetime in hours of proxies got from it (12).',
    }),
    renewers: Flags.string({ helpValue: '<subject>', summary: 'init: who may renew with it.' }),
    json: Flags.boolean({ summary: 'JSON; times in Unix seconds.' }),
  };

  async run(): Promise<void> {
    const { args, flags } = await this.parse(CredMyproxy);
    const { myProxyTools } = await import('../../index.ts');
    const { destroyInMyProxy, getFromMyProxy, listMyProxy, storeInMyProxy } = await myProxyTools();
    const { server, user, cert, key, out, renewers } = flags;
    const request = {
      server,
      user,
      cert,
      key,
      out,
      renewers,
      serverDn: flags['server-dn'],
      credentialName: flags['credential-name'],
      passphraseFile: flags['passphrase-file'],
      noPassphrase: flags['no-passphrase'],
      hours: hoursOf(flags.hours),
      longest: hoursOf(flags.longest),
    };
    const say = (data: unknown, text: string) =>
      process.stdout.write(flags.json ? `${JSON.stringify(data, undefined, 2)}\n` : text);
    switch (args.action) {
      case 'init':
        await storeInMyProxy(request, askAtTerminal);
        say({ stored: true }, 'The proxy is stored.\n');
        return;
      case 'get': {
        const { text, ...data } = await getFromMyProxy(request, askAtTerminal);
        say(data, text);
        return;
      }
      case 'info': {
        const stored = await listMyProxy(request);
        const { timeText } = await import('../../util/plain-text.ts');
        const lines = stored.map(
          (one) =>
            `${one.name === '' ? '(default)' : one.name}  ${one.owner ?? ''}  until ${one.end === undefined ? 'no known end' : timeText(one.end)}\n`,
        );
        say(stored, lines.join('') || 'Nothing is stored there.\n');
        return;
      }
      default:
        await destroyInMyProxy(request);
        say({ destroyed: true }, 'The stored credential is destroyed.\n');
    }
  }
}
